/* SPDX-License-Identifier: Apache-2.0 */
/* A search as a program describes it in a line of JSON: dl-search-server(1).
 */
#pragma once

#include "launcher/cmd/search_entries.h"

/* Read one; 'searcher', if not NULL, is its searcher whatever it says.  Takes
 * the JSON over.  header_free() is due in any case.
 *
 * Returns -1 with errno EINVAL or ENOMEM; what searcher_check() would say of it
 * is not said here.
 */
int header_read (struct search_header *h, json_t *json, const char *searcher,
                 struct slurmdl_error *err);
void header_free (struct search_header *h);

/* Read the value of a trial: a number, or a list of one for each objective;
 * null is NaN.  Returns -1 if it is something else.
 */
int header_values (const struct search_header *h, const json_t *json, const char *who,
                   double *values, struct slurmdl_error *err);
