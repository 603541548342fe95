/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a job whose members have roles: a pure function of how many of
 * each role run, have succeeded and have failed.  Names and meaning are those of
 * Kubeflow's training operator.
 */
#pragma once

#include "launcher/sweep/conditions.h"

enum restart_policy {
    RESTART_ON_FAILURE, /* a member that fails begins again */
    RESTART_NEVER,      /* its failure is the job's */
    RESTART_ALWAYS,     /* a member that ends begins again, however it ended */
    RESTART_EXIT_CODE,  /* one that fails does by its exit status */
    RESTART_POLICIES,
};

enum success_policy {
    SUCCESS_DEFAULT,     /* the chief if there is one, else the first worker */
    SUCCESS_CHIEF,       /* the chief */
    SUCCESS_ALL_WORKERS, /* the chief if there is one, else all workers */
    SUCCESS_ANY,         /* any worker, or the chief */
    SUCCESS_POLICIES,
};

/* Exit statuses, as of a shell, and whether a member that ends with one begins
 * again.
 */
struct exit_range {
    int first, last;
    bool again;
};

/* The table of RESTART_EXIT_CODE where a role has none of its own: 128 and above
 * (signals) begins again, 1 to 127 does not.  Ended by .last 0.
 */
extern const struct exit_range exit_ranges[];

/* The members of one role, and their policy. */
struct role_members {
    const char *name;
    long count;
    enum restart_policy restart;
    const struct exit_range *ranges; /* NULL: exit_ranges */
    long succeeded, failed;          /* the others run */
    bool first_succeeded;            /* the member 0 is among them */
    int status;                      /* of one that failed and is not to begin again, else of any */
};

/* "chief", "master" and "launcher" are the chief; "ps" and "evaluator" serve, and
 * never end a job; all others are workers.
 */
bool role_is_chief (const char *name);
bool role_serves (const char *name);

/* Whether a member that ended with a status (not 0) begins again. */
bool role_begins_again (enum restart_policy restart, const struct exit_range *ranges, int status);

struct verdict {
    enum life_event_kind kind; /* LIFE_STARTED: it runs; LIFE_BROKEN, ... */
    const char *reason;        /* of condition_reasons */
    const char *role;          /* that decides, or NULL */
    int status;                /* of its member, when it failed */
};
struct verdict job_judge (const struct role_members *roles, size_t n, enum success_policy success);
