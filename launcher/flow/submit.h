/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for the steps of a flow, which wait for each other by dependencies. */
#ifndef LAUNCHER_FLOW_SUBMIT_H
#define LAUNCHER_FLOW_SUBMIT_H

#include "launcher/flow/folder.h"

/* Submit a job, or an array, for each step that lacks one; tasks that need not
 * be run get their result here.  'again': Slurm may have jobs of it already,
 * and is asked once.  Returns how many jobs were submitted, -1 with 'err'.
 */
long flow_submit (const struct flow_run *r,
                  bool again,
                  struct slurmdl_error *err);

/* A step with on_exit, whose job 'start' has begun: whether it had to be
 * submitted again, because others were after it.  1, 0, or -1 with 'err'.
 */
int flow_exit_again (const struct flow_run *r,
                     const struct flow_step *s,
                     long start,
                     struct slurmdl_error *err);

/* The jobs that Slurm has of a flow. */
struct flow_job {
    long id;
    bool pending;
    char token[160];
};
struct flow_queue {
    struct flow_job *list;
    size_t n;
    long highest;
};
int flow_queue_read (const struct flow_run *r,
                     struct flow_queue *q,
                     struct slurmdl_error *err);

/* scancel them; -1 with 'err'. */
int flow_cancel (const struct flow_queue *q, struct slurmdl_error *err);

/* Submit job.sh with 'mode' and these arguments, at most once under the number
 * 'n' of "intent.N" and "job.N" of 's'.  'option' is one more of sbatch's, or
 * NULL.  Returns the job, -1 with 'err'.
 */
struct flow_request {
    const char *mode; /* "step", "submit" or "next" */
    const char *dependency, *array, *begin;
    json_t *jobs; /* for the intent, taken */
};
long flow_submit_once (const struct flow_run *r,
                       const struct flow_step *s,
                       long n,
                       const struct flow_request *q,
                       struct slurmdl_error *err);

/* The text of job.sh. */
extern const char flow_job_script[];

#endif
