/* SPDX-License-Identifier: Apache-2.0 */
/* What was forgotten: values of the search that nothing uses. */
#pragma once

#include "launcher/config/experiment.h"

/* Print a line for each hyperparameter that neither the entrypoint nor its
 * script uses, for a length or a seed that reaches nobody, and for a metric
 * whose name suggests the other direction.  The files of the entrypoint are
 * read; where one is no text, or another program may use the values, nothing
 * is said of them.
 */
void forgotten_warn (const struct experiment *e);
