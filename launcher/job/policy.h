/* SPDX-License-Identifier: Apache-2.0 */
/* Apply the policies of a job to an attempt that failed. */
#pragma once

#include "launcher/config/job_settings.h"
#include "launcher/sweep/sweep.h"

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

/* The deadline of a job in s since the epoch; 0: it has none.  The time counts from the start of
 * the job or, if it was suspended, from when it was last resumed.
 */
double job_deadline (const struct sweep *s, const struct sweep_trial *t);
