/* SPDX-License-Identifier: Apache-2.0 */
/* The software of trials, that is their container and environment: check, load and record it. */
#pragma once

#include <jansson.h>

#include "launcher/config/diagnostics.h"
#include "launcher/sys/command_line.h"
#include "runtime/base/error.h"

struct experiment;
struct software;

/* ---- checking and loading ---- */

/* Check that the image exists and, with 'local', that this machine has a runtime for it.  With
 * 'loads', also load the modules and the environment, which runs code that the file names.  Adds a
 * problem of one line for each failure.
 */
void software_check (struct experiment *e, bool local, bool loads, struct problems *p);

/* Load the software, and find out what starts containers.  Call it before the first trial of a
 * process.  Returns -1 with 'err' and errno, which is EINVAL if something does not exist.
 */
int software_enter (struct experiment *e, struct slurmdl_error *err);

/* ---- as JSON ---- */

/* Describe the container and the folders that it sees, and with 'all' also modules, conda and venv,
 * for `dl within`, which reads DL_SOFTWARE.  The caller frees the text.
 */
char *software_text (const struct software *s, char *const *folders, bool all);

/* Add "container" and "environment" to 'o', the provenance of an experiment whose trials run in
 * 'dir'.
 */
void software_record (const struct software *s, const char *dir, json_t *o);

/* Print such a record. */
void software_record_print (const json_t *record);

/* Whether the image is a file that has changed since the record was made. */
bool software_image_differs (const json_t *record);

/* Print the container and the environment of the trials, one per line, if there are any. */
void software_print (const struct software *s);

/* dl within: run a command in the container that DL_SOFTWARE describes.  Returns an exit status. */
int cmd_within (const struct command_line *line);
