/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a running job: which have ended, and how. */
#pragma once

#include <stdbool.h>

#include "launcher/job/verdict.h"
#include "launcher/sweep/attempt.h"

/* The state of an attempt of a job with roles, judged by the ends that its ranks recorded in the
 * attempt's folder (launcher/trainer/step.h).
 */
struct members {
    struct verdict verdict;
    long rank;     /* the failed rank that decides; -1: none failed */
    long index;    /* of that rank in its role, from 0 */
    char node[65]; /* where it ran */
    bool others;   /* only members that serve, such as parameter servers, may still run */
};
void members_look (const struct trial_attempt *a, struct members *m);
