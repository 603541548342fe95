/* SPDX-License-Identifier: Apache-2.0 */
/* What a failed attempt means: try again, and where, and how often. */
#pragma once

#include <stdbool.h>

struct trial_attempt;

/* Memory that a trainer ran out of. */
enum oom {
    OOM_NONE,
    OOM_HOST,
    OOM_GPU,
};

/* What the kernel killed in the cgroup of an attempt. */
enum oom_kill {
    KILLED_NOTHING,
    KILLED_SOMETHING, /* perhaps of another attempt */
    KILLED_OWN,       /* a process of this attempt */
};

struct failure_class {
    bool free;     /* does not count towards max_restarts */
    bool progress; /* it came further than the attempts before it */
    bool last;     /* another try makes no sense */
    bool exclude;  /* no attempt of this experiment is to begin here again */
    enum oom oom;
    int error;     /* ENOSPC, EDQUOT: the disk was full; else 0 */
    char why[512]; /* for people */
};

/* Judge the attempt whose trainer ended with 'status' (of waitpid()) and
 * without a result.  'killed': by the kernel meanwhile, for want of memory.
 * Searches the attempt's log by log_policies.
 */
void failure_classify (const struct trial_attempt *a, int status, enum oom_kill killed,
                       struct failure_class *v);

/* The nodes, a name a line, that a check before the trainer's start
 * (--dl-check) has found bad; the caller frees it.  NULL: none.
 */
char *failure_bad_nodes (const char *dir);

/* ---- the table of ends ---- */

enum retry {
    RETRY_COUNTED, /* towards max_restarts */
    RETRY_FREE,
    RETRY_NEVER,
};

/* Statuses, as of a shell, with a meaning of their own; dl-trainer(7), EXIT
 * STATUS. */
struct end_row {
    int status;
    enum retry retry;
    const char *why;
    bool exclude; /* the machine */
};
extern const struct end_row end_table[]; /* ended by the status -1 */
