/* SPDX-License-Identifier: Apache-2.0 */
/* Write an experiment as other tools have it, with the Python package. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Whether slurmdl.export has the format. */
bool tool_has_format (const char *name);

/* Export to the folder 'output', which is made, or is this user's own; NULL:
 * EXPERIMENT.FORMAT here.  With 'every' > 0 look for what is new in so many
 * seconds until the experiment has ended.  DL_PYTHON or python3 does it.
 *
 * What is there already is kept, and not written again.  Returns an exit
 * status, after a line if it is not 0.
 */
int tool_export (struct sweep *s, const char *format, const char *output, double every);
