/* SPDX-License-Identifier: Apache-2.0 */
/* Watch an attempt with several ranks, and recover from hung or lost nodes within the allocation.
 */
#pragma once

#include "launcher/heal/heal.h"
#include "launcher/sweep/attempt.h"
#include "launcher/worker/worker.h"
#include "launcher/worker/worker_private.h"
#include "runtime/comm/net/notice.h"

struct trainer;

/* What the worker does about a step that seems to be in trouble. */
enum heal_phase {
    HEAL_WATCHES, /* nothing is wrong so far */
    HEAL_STACKS,  /* wait for the ranks to dump their stacks */
    HEAL_DOUBTS,  /* wait to see whether the ranks make progress after all */
    HEAL_AGAIN,   /* wait for a second dump of the stacks */
    HEAL_ENDS,    /* give the ranks a moment to exit by themselves */
    HEAL_WAITS,   /* wait for srun to exit */
};

/* Whether Slurm can start steps on nodes that are not suspect. */
enum heal_steps { STEPS_UNKNOWN, STEPS_START, STEPS_FAIL };

struct heal {
    struct rank_watch *watch; /* NULL: the ranks are not watched */
    struct slow_ranks *slow;  /* NULL: the same */
    char notice[NOTICE_NAME];
    struct heal_limits limits;
    struct heal_learned learned;
    struct heal_verdict verdict;
    enum heal_phase phase;
    double until; /* end of the phase */
    bool left;    /* srun was killed */
    long dumps;   /* number of stack dumps so far */
    double start, output;
    double ticked;     /* when heal_tick() was last called; 0: never */
    long long printed; /* bytes in the log */
    struct first_failure first;
    struct timespec logged; /* when metrics.h5 last changed; 0: it does not exist */
    bool warned;
    struct slurmdl_error blind; /* why the ranks are not watched, or "" */
    enum heal_steps steps;      /* found out when the first check cannot be run */
    char *nodes;                /* nodes of the attempt; NULL: unknown */
    char notes[HEALING_MOST];   /* lines, as in the attempt's folder */
};

/* Choose the nodes of an attempt, and listen for its ranks, which learn the address from a->ranks,
 * until heal_end().  The attempt's folder need not exist yet.
 */
void heal_begin (struct heal *h, struct worker *w, struct trial_attempt *a);

/* Once the attempt's folder exists. */
void heal_started (struct heal *h, const struct trial_attempt *a, struct trainer *t);

/* Write one line per event to the worker's output, to the attempt's log, and to the attempt's
 * folder, from which dl show and dl watch read it.
 */
void heal_note (struct heal *h, const struct trial_attempt *a, struct trainer *t,
                const char *format, ...) __attribute__ ((format (printf, 4, 5)));

/* Only answer the ranks.  A rank that connects waits for the answer, and meanwhile passes on no
 * signal to its program.
 */
void heal_serve (struct heal *h);

/* Check on the ranks, and end the step if something is wrong with it. */
void heal_tick (struct heal *h, const struct trial_attempt *a, struct trainer *t);

/* The wait status of the step: that of srun, or of the rank that ended first. */
int heal_status (const struct heal *h, int status);

/* Add to 'v' what is known about why the attempt failed. */
void heal_explain (const struct heal *h, struct failure_class *v);

/* The attempt is over: check the suspect node, or one on which no rank ran, and exclude it if it is
 * bad.  'v' is the verdict on a failed attempt, else NULL.
 */
void heal_end (struct heal *h, struct worker *w, const struct trial_attempt *a,
               struct failure_class *v);
