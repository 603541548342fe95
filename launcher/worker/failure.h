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

/* What the OOM killer killed in the cgroup of an attempt. */
enum oom_kill {
    KILLED_NOTHING,
    KILLED_SOMETHING, /* possibly a process of another attempt */
    KILLED_OWN,       /* a process of this attempt */
};

struct failure_class {
    bool free;     /* does not count towards max_restarts */
    bool progress; /* the attempt got further than those before it */
    bool last;     /* do not retry: the next attempt would fail, too */
    bool exclude;  /* start no more attempts of this experiment on this node */
    enum oom oom;
    int error;         /* ENOSPC or EDQUOT if the disk was full, else 0 */
    int status;        /* exit status as a shell reports it */
    const char *cause; /* one of condition_reasons; NULL: the program failed */
    char why[512];     /* the reason, to be shown to the user */
};

/* Classify an attempt whose trainer ended without a result, with the wait status 'status';
 * 'killed': what the kernel's OOM killer did meanwhile.  Applies log_policies to the attempt's log.
 */
void failure_classify (const struct trial_attempt *a, int status, enum oom_kill killed,
                       struct failure_class *v);

/* The bad nodes, one per line, that the check before the trainer's start (--dl-check) found.  The
 * caller frees the text.  Returns NULL if there are none.
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
    RETRY_COUNTED, /* counts towards max_restarts */
    RETRY_FREE,
    RETRY_NEVER,
};

/* Exit statuses, as a shell reports them, that have a meaning: dl-trainer(7), EXIT STATUS. */
struct end_row {
    int status;
    enum retry retry;
    const char *why;
    bool exclude; /* exclude the node */
};
extern const struct end_row end_table[]; /* the last row has status -1 */
