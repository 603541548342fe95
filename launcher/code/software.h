/* SPDX-License-Identifier: Apache-2.0 */
/* The software of trials, their container and environment: check it, record it, and enter it. */
#pragma once

#include <jansson.h>

#include "launcher/config/diagnostics.h"
#include "launcher/sys/command_line.h"
#include "runtime/base/error.h"

struct experiment;
struct software;

/* ---- checking and loading ---- */

/* Check that the image exists and, with 'local', that this machine has a runtime for it.  With
 * 'loads' also load modules and environment, which runs code that the file names.  Failures become
 * problems, one line each.
 */
void software_check (struct experiment *e, bool local, bool loads, struct problems *p);

/* Before the first trial of this process: load the software, and find out what starts containers.
 * Returns -1 with errno, EINVAL for what does not exist.
 */
int software_enter (struct experiment *e, struct slurmdl_error *err);

/* ---- as JSON ---- */

/* For `dl within` (DL_SOFTWARE): the container and the folders that it sees; with 'all' also
 * modules, conda and venv.  The caller frees it.
 */
char *software_text (const struct software *s, char *const *folders, bool all);

/* For the provenance of an experiment whose trials run in 'dir': add "container" and "environment"
 * to 'o'.
 */
void software_record (const struct software *s, const char *dir, json_t *o);

/* Print what a record contains. */
void software_record_print (const json_t *record);

/* Whether the image is a file that has changed since the record was made. */
bool software_image_differs (const json_t *record);

/* Print what the trials run in, one line each; nothing if that is nothing. */
void software_print (const struct software *s);

/* dl within: run a command in the container of DL_SOFTWARE; returns an exit status. */
int cmd_within (const struct command_line *line);
