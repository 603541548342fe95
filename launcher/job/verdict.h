/* SPDX-License-Identifier: Apache-2.0 */
/* Apply the policies of a job: decide whether it runs, has succeeded, fails or restarts.  Names and
 * meanings are those of Kubeflow's training operator.
 */
#pragma once

#include "launcher/config/job_settings.h"
#include "launcher/sweep/conditions.h"

/* The members of one role, and their policy. */
struct role_members {
    const char *name;
    long count;
    enum restart_policy restart;
    const struct exit_range *ranges; /* for RESTART_EXIT_CODE; NULL: exit_ranges */
    long succeeded, failed;          /* all other members run */
    bool first_succeeded;            /* member 0 has succeeded */
    int status;                      /* of a failed member, if possible one that is not restarted */
};

/* Whether a member is restarted after it ended with 'status', which is not 0. */
bool role_begins_again (enum restart_policy restart, const struct exit_range *ranges, int status);

struct verdict {
    enum life_event_kind kind; /* LIFE_STARTED: it runs; LIFE_BROKEN: it restarts; LIFE_SUCCEEDED or
                                  LIFE_FAILED: it ends */
    const char *reason;        /* a word of condition_reasons */
    const char *role;          /* the role that decides, or NULL */
    int status;                /* of the member that failed in this role */
};

/* Judge a job with roles by how many members of each role run, have succeeded and have failed. */
struct verdict job_judge (const struct role_members *roles, size_t n, enum success_policy success);

/* ---- a failed attempt ---- */

struct job_failure {
    int status; /* exit status, as in a shell */
    bool free;  /* the failure does not count: the program asked to be restarted, or the machine was
                   to blame */
    bool progress; /* the attempt got further than those before it */
    int before;    /* attempts that failed since the last progress, without this one */
    int alike;     /* attempts that failed in the same way, this one included */
};

/* Why a job fails now, as a word of condition_reasons; NULL: the job is restarted. */
const char *job_gives_up (const struct experiment *e, const struct job_failure *f);

/* The deadline of a job in seconds since the epoch; 0: it has none.  The time counts from the start
 * of the job or, if it was suspended, from when it was last resumed.
 */
struct sweep;
struct sweep_trial;
double job_deadline (const struct sweep *s, const struct sweep_trial *t);
