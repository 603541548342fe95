/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a flow: what Slurm has of them, and one more. */
#pragma once

#include "launcher/flow/records.h"

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
int flow_queue_read (const struct flow_run *r, struct flow_queue *q, struct slurmdl_error *err);

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
long flow_submit_once (const struct flow_run *r, const struct flow_step *s, long n,
                       const struct flow_request *q, struct slurmdl_error *err);

/* A new record "intent" of this process, which the caller owns. */
json_t *flow_intent (const char *mode);

/* Whether the process that wrote one runs: 1 yes, or that cannot be told; 0 it
 * has ended, or there is no record; -1 it is of another host.
 */
int flow_intent_runs (const json_t *intent);

/* The text of job.sh. */
extern const char flow_job_script[];

/* The job that was submitted under the number 'n', 0: none is noted. */
long flow_job_of (const struct flow_run *r, const struct flow_step *s, long n);
/* The same, after who meant to submit it has done so, or has ended, or a minute
 * later.
 */
long flow_job_to_come (const struct flow_run *r, const struct flow_step *s, long n);
/* The token by which Slurm knows it. */
void flow_job_token (char token[160], const struct flow_run *r, const struct flow_step *s, long n);
int flow_note_job (const struct flow_run *r, const struct flow_step *s, long n, long id,
                   struct slurmdl_error *err);
