/* SPDX-License-Identifier: Apache-2.0 */
/* Find the processes of each rank of a job step on this node. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"

/* A rank's root process is the one that Slurm started: its environment names
 * the job and the step, and its SLURM_TASK_PID is its own pid.  The rank's
 * other processes are those below it, and those that have left it (their
 * parent ended) whose environment names the same job, step and SLURM_PROCID,
 * unless they or a parent run this very program: helpers beside the tasks are
 * no load of the rank.
 *
 * Seen are the processes of this user; not those that change their user.  A
 * root that has no environment yet (it is between fork and exec) is found at
 * a later look.
 */

enum { PROCESS_NAME = 16 };

/* One process, as the last look found it. */
struct rank_process {
    long rank;       /* SLURM_PROCID */
    long local_rank; /* SLURM_LOCALID; -1: not known */
    pid_t pid;
    pid_t parent;
    uint64_t start; /* in clock ticks since the machine started */
    char state;     /* R, S, D, T, ... of proc(5) */
    char name[PROCESS_NAME];
    long threads;
    uint64_t user, system;             /* CPU time, in clock ticks; and with that ... */
    uint64_t user_ended, system_ended; /* ... of children that ended */
    uint64_t resident;                 /* in pages */
};

struct ranks;

/* 'proc' is the root of proc, "/proc" but in tests; 'job' and 'step' are the
 * texts of SLURM_JOB_ID and SLURM_STEP_ID.  Where this process has a
 * SLURMD_NODENAME and a SLURM_CLUSTER_NAME, only ranks with the same are
 * found: a machine may have several slurmd.  Nothing is looked at yet.
 * Returns NULL with errno and 'err' set.
 */
struct ranks *ranks_create (const char *proc, const char *job, const char *step,
                            struct slurmdl_error *err);
void ranks_destroy (struct ranks *r);

/* Look again.  Cheap to repeat: an environment is read once for a process
 * that is new or has another name than before; of other users' processes
 * nothing is.
 *
 * Returns the number of living root processes; -1 with errno if proc cannot
 * be read (what was found before stays).
 */
int ranks_look (struct ranks *r);

/* No rank has a process any more, as the caller knows without a look. */
void ranks_forget (struct ranks *r);

/* The living root processes, in order of rank.  Both lists are the object's,
 * until the next look.
 */
const struct rank_process *ranks_roots (const struct ranks *r, size_t *n);

/* All living processes of all ranks: in order of rank, then of pid. */
const struct rank_process *ranks_all (const struct ranks *r, size_t *n);

/* Those of one rank; NULL and *n 0 if there are none. */
const struct rank_process *ranks_of (const struct ranks *r, long rank, size_t *n);
