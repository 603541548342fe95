/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's allocation: its slot and GPUs, its time and memory, and which trials fit into it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct experiment;
struct trial_attempt;
struct worker;
struct worker_place;

/* ---- the place ---- */

/* Fill in 'place', whose slot is written to 'slot'.  If several workers share the step, show this
 * one only its own GPUs.
 */
void place_find (struct worker_place *place, const struct experiment *e, const char *given,
                 char *slot, size_t size);

/* Seconds until Slurm ends the job, less the time needed to stop.  Returns 0 if unknown or
 * unlimited.
 */
double allocation_seconds_left (void);

/* Requeue this job or array task, excluding the nodes "n1,n2" (may be "").  Slurm ends this process
 * meanwhile.  If it does not, print why and return -1.
 */
int allocation_requeue (const char *avoid);

enum job_state {
    JOB_RUNS,    /* or the worker is in no job */
    JOB_ENDED,   /* the worker outlived its job, as when slurmstepd was killed */
    JOB_UNKNOWN, /* slurmctld does not answer */
};

/* Ask Slurm for the state of this worker's job. */
enum job_state allocation_state (void);

/* ---- time ---- */

/* Whether the trial's segment to 'length' (the trial may be the next one) fits into the time left
 * or, if trainers save checkpoints, whether a worthwhile part of it does.  Always true in a fresh
 * allocation, because a requeued job would get no more time.
 */
bool budget_fits (const struct worker *w, long trial, int64_t length);

/* Whether the attempt used up a fresh allocation without saving a checkpoint or getting further
 * than the attempts before it.
 */
bool budget_in_vain (const struct worker *w, const struct trial_attempt *a);

/* ---- memory ---- */

/* The memory that the workers of one job share on this node. */
struct job_memory {
    int64_t bytes;   /* in all; 0: unknown */
    long place;      /* of this worker among them, from 0 */
    long places;     /* number of workers */
    bool is_job;     /* the limit is Slurm's */
    bool can_grow;   /* dl requeue can submit a larger job */
    bool leaves;     /* the worker must exit: there is no room for it, or the job is too small */
    bool too_small;  /* the job is too small */
    int64_t settled; /* bytes per attempt already found to fit here */
};

/* Read the limits from Slurm's variables, or from DL_WORKER_PLACE, which the local executor sets,
 * and the cgroup below 'root' (oom.h).
 */
void job_memory_find (const char *root, struct job_memory *m);

/* Whether this worker's share of the memory suffices for a trial.  If not, the worker may have to
 * exit.
 */
bool memory_fits (struct worker *w);

/* Bytes available to an attempt that begins now; 0: unknown. */
int64_t memory_of_attempt (const struct worker *w);

/* Bytes for the next attempt of a trial that ran out of memory with 'had' bytes and a measured peak
 * of 'peak' bytes (0: unknown).  Returns 0 if no more memory is available.
 */
int64_t memory_to_retry (const struct worker *w, int64_t had, int64_t peak);

/* Append "; tried again with 6G of memory instead of 4G" to a reason. */
void memory_add_reason (char *why, size_t size, int64_t had, int64_t more);
