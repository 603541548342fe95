/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a worker's attempts have, and more for those that ran out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct settings;
struct worker;

/* What the workers of a job on this machine share. */
struct job_memory {
    int64_t bytes;   /* all of it, 0: not known */
    long place;      /* of this worker among them, from 0 on */
    long places;     /* how many there are */
    bool is_job;     /* of Slurm */
    bool can_grow;   /* dl requeue submits a larger job */
    bool leaves;     /* the worker has no place, or too small a job */
    bool too_small;  /* the latter */
    int64_t settled; /* so much each attempt has: nobody else takes of it */
};

/* Read it from Slurm's variables and from DL_WORKER_PLACE, which a local
 * executor sets; of a machine at 'root' (oom.h).
 */
void job_memory_find (const char *root, struct job_memory *m);

/* Whether an attempt of this worker may begin: the trials need no more memory
 * than its part of the job has.  If not, it may have to leave.
 */
bool memory_fits (struct worker *w);

/* Bytes that an attempt has which begins now, 0: not known. */
int64_t memory_of_attempt (const struct worker *w);

/* Bytes with which a trial is tried again that ran out of 'had' and was seen to
 * need 'peak' (0: not known).  0: more cannot be had.
 */
int64_t memory_to_retry (const struct worker *w, int64_t had, int64_t peak);

/* Append "; tried again with 6G of memory instead of 4G" to a reason. */
void memory_add_reason (char *why, size_t size, int64_t had, int64_t more);
