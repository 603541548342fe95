/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of trials in the picture of an experiment. */
#pragma once

#include "launcher/progress/picture.h"
#include "launcher/sweep/phase.h"

/* The trials of an experiment, counted. */
struct picture_tally {
    long n[TRIAL_PHASES];
    long *running; /* numbers */
    long *failed;  /* the last one first */
    double ended;  /* s of attempts that have ended ... */
    double begun;  /* ... and of those that are at work */
    double left;   /* s of trials, NaN: not known */
    double eta;    /* s, NaN: not known */
};

/* Trials at work, that wait, that failed, and the best ones, with as many lines
 * as there is room for.
 */
void picture_trials (struct picture *p,
                     const struct picture_tally *t,
                     struct screen *c);
