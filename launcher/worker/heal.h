/* SPDX-License-Identifier: Apache-2.0 */
/* Heal an attempt of several ranks within the allocation. */
#pragma once

#include "launcher/heal/judge.h"
#include "launcher/sweep/attempt.h"
#include "launcher/worker/failure.h"
#include "launcher/worker/worker_private.h"
#include "runtime/comm/net/notice.h"

struct trainer;

/* What the worker does about a step that something is wrong with. */
enum heal_phase {
    HEAL_WATCHES,
    HEAL_STACKS, /* the ranks write their stacks */
    HEAL_DOUBTS, /* whether they will be elsewhere in a moment */
    HEAL_AGAIN,  /* they write them once more */
    HEAL_ENDS,   /* they get a moment to end by themselves */
    HEAL_WAITS,  /* for srun */
};

struct heal {
    struct rank_watch *watch; /* NULL: nobody watches the ranks */
    char notice[NOTICE_NAME];
    struct heal_limits limits;
    struct heal_learned learned;
    struct heal_verdict verdict;
    enum heal_phase phase;
    double until; /* of the phase */
    bool left;    /* srun was killed */
    long dumps;   /* of stacks, so far */
    double start, output;
    long long printed; /* bytes in the log and in the metrics */
    bool warned;
    char *nodes;              /* of the attempt, NULL: not known */
    char notes[HEALING_MOST]; /* lines, as they are in the attempt's folder */
};

/* Choose the nodes of an attempt, and listen for its ranks, which get the
 * address by a->ranks; until heal_end().  The attempt's folder need not be there yet.
 */
void heal_begin (struct heal *h, struct worker *w, struct trial_attempt *a);

/* See how its ranks fare, and end the step if something is wrong with it. */
void heal_tick (struct heal *h, const struct trial_attempt *a, struct trainer *t);

/* The status of waitpid() with which the step ended: that of srun, or of the
 * rank that ended first.
 */
int heal_status (const struct heal *h, int status);

/* What is known about the end of an attempt that failed. */
void heal_explain (const struct heal *h, struct failure_class *v);

/* It is over: check the node that is to blame, or one that had no rank, and leave it out if it is
 * bad.  'v' is the verdict on an attempt that failed, else NULL.
 */
void heal_end (struct heal *h, struct worker *w, const struct trial_attempt *a,
               struct failure_class *v);
