/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a job that runs: which have ended, and how. */
#pragma once

#include <stdbool.h>

#include "launcher/job/verdict.h"
#include "launcher/sweep/attempt.h"

/* What becomes of an attempt of a job with roles, by the ends that its ranks have
 * left in its folder (launcher/trainer/step.h).
 */
struct members {
    struct verdict verdict;
    long rank;     /* that decides, if its verdict is a failure */
    long index;    /* of it in its role */
    char node[65]; /* where it was */
    bool others;   /* only members that serve still run */
};
void members_look (const struct trial_attempt *a, struct members *m);
