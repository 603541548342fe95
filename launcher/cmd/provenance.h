/* SPDX-License-Identifier: Apache-2.0 */
/* The recorded provenance of an experiment. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Read the record; the caller owns the object.  Returns NULL after printing an error
 * if there is no record, or if it is not the one made with the experiment.
 */
json_t *provenance_read (const struct sweep *s);

/* Print the record (dl show --provenance).  Returns an exit status. */
int provenance_print (const struct sweep *s, bool as_json);
