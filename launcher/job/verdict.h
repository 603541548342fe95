/* SPDX-License-Identifier: Apache-2.0 */
/* Decide whether a job with roles runs, has succeeded, fails or restarts: a pure function of how
 * many members of each role run, have succeeded and have failed.  Names and meanings are those of
 * Kubeflow's training operator.
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
struct verdict job_judge (const struct role_members *roles, size_t n, enum success_policy success);
