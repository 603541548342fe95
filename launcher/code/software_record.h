/* SPDX-License-Identifier: Apache-2.0 */
/* The container and environment of an experiment as JSON. */
#pragma once

#include <jansson.h>

#include "launcher/config/experiment.h"

/* For `dl within` (DL_SOFTWARE): the container and the folders that it sees;
 * with 'all' the modules, conda and venv too.  The caller frees it.
 */
char *software_text (const struct software *s, char *const *folders, bool all);

/* The opposite.  Returns -1 if it is no such text; the caller frees what is
 * set.
 */
int software_parse (const char *text, struct software *s, char ***folders);
void software_free (struct software *s);

/* For the provenance of an experiment whose trials run in 'dir': "container"
 * and "environment" are added to 'o'.
 */
void software_record (const struct software *s, const char *dir, json_t *o);

/* Print what a record has of it. */
void software_record_print (const json_t *record);

/* The image is a file that is not as it was when the record was made. */
bool software_image_differs (const json_t *record);

/* Print what the trials run in, a line each; nothing without. */
void software_print (const struct software *s);
