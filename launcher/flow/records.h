/* SPDX-License-Identifier: Apache-2.0 */
/* The records in the folder of a run: what has begun, and how it has ended. */
#pragma once

#include <stdbool.h>

#include "launcher/flow/run_folder.h"

/* "DIR/steps/STEP", "DIR/steps/STEP/I", or a file there with a number. */
void flow_path (char buf[PATH_MAX], const struct flow_run *r, const struct flow_step *s, long task,
                const char *file, long number);

/* A record; NULL if there is none, or with 'err' it cannot be read.  'task' is
 * -1 for one of the step's.
 */
json_t *flow_record (const struct flow_run *r, const struct flow_step *s, long task,
                     const char *file, long number);

/* Put one; it is taken.  1: there is one already.  -1 with 'err'. */
int flow_put (const struct flow_run *r, const struct flow_step *s, long task, const char *file,
              long number, json_t *record, struct slurmdl_error *err);

/* The highest number of "intent.N", "begin.K", ..., 0: there is none. */
long flow_last (const struct flow_run *r, const struct flow_step *s, long task, const char *file);

/* Which of the 'width' tasks of a step have a folder: the others have no record
 * of theirs.  The caller frees the list; NULL: not known.
 */
bool *flow_tasks_begun (const struct flow_run *r, const struct flow_step *s, long width);

/* "stop.N" and "resume.N": whether the last word is that it is to end. */
bool flow_is_stopped (const struct flow_run *r);
int flow_mark (const struct flow_run *r, bool stop, struct slurmdl_error *err);
