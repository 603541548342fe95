/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a flow's run: complete files that never change. */
#pragma once

#include <limits.h>

#include "launcher/flow/flow.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/settings.h"
#include "runtime/slurmdl.h"

/* NAME-0001/
 *   flow.json        what is run: parameters, digests of flow.conf and code
 *   flow.conf        as submitted
 *   job.sh           of the jobs
 *   code.tar.zst, code/
 *   stop.N, resume.N it is to end; it goes on
 *   steps/STEP/intent.N   its tasks are about to be started the Nth time
 *   steps/STEP/job.N      and are this job of Slurm's
 *   steps/STEP/I/begin.K  attempt K of task I has begun,
 *   steps/STEP/I/end.K    has failed,
 *   steps/STEP/I/a.K/     has this folder (in 'work' what its command wrote
 *                         into its working folder);
 *   steps/STEP/I/done     the result of the task, the first one counts (of a
 *                         step with on_exit done.N, of the Nth start)
 */
struct flow_run {
    char dir[PATH_MAX]; /* canonical */
    struct flow *flow;
    json_t *about;         /* flow.json */
    char pin[DIGEST_SIZE]; /* digest of it */
};

/* Make the folder of a new run below 'root'.  'about' is completed with the
 * parameters; flow.json comes last.  Returns -1 with 'err'.
 */
int flow_create (struct flow_run *r, const char *root, struct slurmdl_error *err);
int flow_commit (struct flow_run *r, struct slurmdl_error *err);

/* Open the run that the user means: a folder, its name below --dir, or without
 * a number the newest of that name; NULL: the newest of all.  'own': it must
 * be this user's alone, for what it says is run.  flow_close() in any case.
 * Returns an exit status, after a line.
 */
int flow_open (struct flow_run *r, const struct settings *st, const char *name, bool own);
void flow_close (struct flow_run *r);

/* The folder of the flow file below that of the frozen code: "", or "/sub". */
const char *flow_code_below (const struct flow_run *r);

/* Call 'f' for each run below 'root', by name. */
int flow_each (const char *root, void (*f) (const char *dir, void *arg), void *arg);
