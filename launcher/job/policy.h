/* SPDX-License-Identifier: Apache-2.0 */
/* What the policies of a job say of an attempt that failed. */
#pragma once

#include "launcher/config/job_settings.h"
#include "launcher/sweep/sweep.h"

struct job_failure {
    int status;    /* as of a shell */
    bool free;     /* it does not count: the program asked for it, or the machine was to blame */
    bool progress; /* it got further than those before it */
    int before;    /* attempts that failed since the last progress, without this */
    int alike;     /* of these, with this one, so many in the same way */
};

/* The reason (of condition_reasons) for which a job has failed; NULL: it begins
 * again.
 */
const char *job_gives_up (const struct experiment *e, const struct job_failure *f);

/* When it is to be over, in s since the epoch; 0: never.  The time counts from
 * its start, or from when it was last resumed.
 */
double job_deadline (const struct sweep *s, const struct sweep_trial *t);
