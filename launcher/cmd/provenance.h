/* SPDX-License-Identifier: Apache-2.0 */
/* Where an experiment comes from, as it was recorded. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* The record, an object that the caller owns.  NULL after a line: there is
 * none, or it is not the one that was made with the experiment.
 */
json_t *provenance_read (const struct sweep *s);

/* Print it (dl show --provenance).  Returns an exit status. */
int provenance_print (const struct sweep *s, bool as_json);
