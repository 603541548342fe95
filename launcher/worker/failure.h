/* SPDX-License-Identifier: Apache-2.0 */
/* Classify failed attempts: whether to retry, where, and why. */
#pragma once

#include <stdbool.h>

struct trial_attempt;

/* Which memory a trainer ran out of. */
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
    bool progress; /* it got further than the attempts before it */
    bool last;     /* do not retry: it would fail again */
    bool exclude;  /* start no more attempts of this experiment on this node */
    enum oom oom;
    int error;         /* ENOSPC, EDQUOT: the disk was full; else 0 */
    int status;        /* as of a shell */
    const char *cause; /* of condition_reasons; NULL: the program failed */
    char why[512];     /* for people */
};

/* Classify an attempt whose trainer ended without a result, with the wait status 'status';
 * 'killed': what the kernel's OOM killer did meanwhile.  Applies log_policies to the attempt's log.
 */
void failure_classify (const struct trial_attempt *a, int status, enum oom_kill killed,
                       struct failure_class *v);

/* The bad nodes, one a line, that a check before the trainer's start (--dl-check) found; the caller
 * frees the text.  NULL: none.
 */
char *failure_bad_nodes (const char *dir);

enum { LAST_LINE = 200 };

/* Copy the last line of the log in the attempt's folder 'dir' that is neither blank nor Slurm's
 * message about the end of its step.  It may contain any bytes.
 *
 * Returns 0, or -1 if there is none.
 */
int attempt_last_line (const char *dir, char line[LAST_LINE]);

/* ---- exit statuses ---- */

enum retry {
    RETRY_COUNTED, /* towards max_restarts */
    RETRY_FREE,
    RETRY_NEVER,
};

/* Exit statuses, as a shell reports them, that have a meaning: dl-trainer(7), EXIT STATUS. */
struct end_row {
    int status;
    enum retry retry;
    const char *why;
    bool exclude; /* the machine */
};
extern const struct end_row end_table[]; /* ended by the status -1 */
