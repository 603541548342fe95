/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a job whose members have roles: a pure function of how many of
 * each role run, have succeeded and have failed.  Names and meaning are those of
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
    const struct exit_range *ranges; /* NULL: exit_ranges */
    long succeeded, failed;          /* the others run */
    bool first_succeeded;            /* the member 0 is among them */
    int status;                      /* of one that failed and is not to begin again, else of any */
};

/* Whether a member that ended with a status (not 0) begins again. */
bool role_begins_again (enum restart_policy restart, const struct exit_range *ranges, int status);

struct verdict {
    enum life_event_kind kind; /* LIFE_STARTED: it runs; LIFE_BROKEN, ... */
    const char *reason;        /* of condition_reasons */
    const char *role;          /* that decides, or NULL */
    int status;                /* of its member, when it failed */
};
struct verdict job_judge (const struct role_members *roles, size_t n, enum success_policy success);
