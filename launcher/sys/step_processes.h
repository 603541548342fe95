/* SPDX-License-Identifier: Apache-2.0 */
/* Find the processes of each rank of a job step on this node. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* The root process of a rank is the one that Slurm started: its environment names the job and step,
 * and its SLURM_TASK_PID is its own pid.  The rank's other processes are its descendants, and
 * orphans whose environment names the same job, step and SLURM_PROCID.  Processes that run this
 * very program, and their descendants, do not count: they are helpers, not the rank's load.
 *
 * Only this user's processes are visible, so that a process which changes its user is missed.  A
 * root without an environment (between fork and exec) is found by a later scan.
 */

enum { PROCESS_NAME = 16 };

/* A process as of the last scan. */
struct rank_process {
    long rank;       /* SLURM_PROCID */
    long local_rank; /* SLURM_LOCALID; -1: unknown */
    pid_t pid;
    pid_t parent;
    uint64_t start; /* clock ticks from boot to its start */
    char state;     /* R, S, D, T, ...; see proc(5) */
    char name[PROCESS_NAME];
    long threads;
    uint64_t user, system;             /* CPU time, in clock ticks */
    uint64_t user_ended, system_ended; /* CPU time of children that ended */
    uint64_t resident;                 /* in pages */
};

struct ranks;

/* 'proc' is "/proc" except in tests; 'job' and 'step' are the values of SLURM_JOB_ID and
 * SLURM_STEP_ID.  If SLURMD_NODENAME and SLURM_CLUSTER_NAME are set, only ranks with the same
 * values are found, because several slurmd may run on one machine.  Does not scan yet.
 * Returns NULL with errno and 'err' on failure.
 */
struct ranks *ranks_create (const char *proc, const char *job, const char *step,
                            struct slurmdl_error *err);
void ranks_destroy (struct ranks *r);

/* Scan the processes.  Scans are cheap to repeat: they read the environment of a process only if it
 * is new or has changed its name, and never for other users' processes.
 *
 * Returns the number of live root processes, or -1 with errno if proc cannot be read; the previous
 * result then stays valid.
 */
int ranks_look (struct ranks *r);

/* Drop all processes.  The caller knows without a scan that no rank has any left. */
void ranks_forget (struct ranks *r);

/* The live root processes in order of rank.  'r' owns this list and the next; they are valid until
 * the next scan.
 */
const struct rank_process *ranks_roots (const struct ranks *r, size_t *n);

/* All live processes of all ranks in order of rank, then pid. */
const struct rank_process *ranks_all (const struct ranks *r, size_t *n);

/* The processes of one rank.  Returns NULL and sets '*n' to 0 if there are none. */
const struct rank_process *ranks_of (const struct ranks *r, long rank, size_t *n);
