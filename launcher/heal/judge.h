/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what is wrong with the ranks of a step, from what they reported: a pure function. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* How a rank spent its time: sums of the shares in its heartbeats, of which it sends one a second.
 */
struct heal_work {
    double beats;
    double active;    /* it ran, or was ready to run: it waited for no other rank */
    double ready;     /* part of 'active': it was ready, but had no core */
    double throttled; /* a limit of its cgroup kept it from running */
    double blocked;   /* it waited for storage (state D) */
    double stopped;   /* SIGSTOP had stopped it */
};

/* A rank as the worker sees it.  All times are in s of the same monotonic clock. */
struct heal_seen {
    bool came;     /* it has connected */
    bool over;     /* its program has ended ... */
    int status;    /* ... with this status of waitpid() */
    bool cut;      /* its connection ended, but it had not reported an end */
    bool lost;     /* its host does not acknowledge packets any more */
    double at;     /* when it became over, cut or lost */
    double moved;  /* when it last made progress */
    double cores;  /* CPU cores that it used lately, on average */
    double sleeps; /* s until its own timer wakes it, at most; 0: it does not sleep */
    char state;    /* of its training process, such as 'T' (proc(5)); 0: not known */
    struct heal_work work;
    const char *host;
};

enum heal_cause {
    HEAL_NONE,
    HEAL_DIED,    /* the program of a rank failed */
    HEAL_CUT,     /* the processes of a rank are gone */
    HEAL_STOPPED, /* a rank is stopped (SIGSTOP), and the others wait for it */
    HEAL_HANG,    /* no rank makes progress */
    HEAL_LOST,    /* a node does not answer */
    HEAL_CAUSES
};

/* How long this run went without progress in the past. */
struct heal_learned {
    double longest; /* s of the longest gap, in which no rank made progress, that has ended */
    double gap;     /* s of the current gap at the last call */
};

/* Call this regularly with the seconds that heal_quiet() returns. */
void heal_learn (struct heal_learned *l, double quiet);

struct heal_limits {
    double start; /* limit in s until the training is past its start */
    double least; /* limit in s once it has a rhythm; what was learned only raises it; 0: none */
    bool fixed;   /* always use 'least' */
    long signs;   /* how often the training was seen to print, log or save */
    bool may_end; /* ranks have roles, so that job_judge() judges how they end, not this */
};

struct heal_verdict {
    enum heal_cause cause;
    int status;    /* HEAL_DIED: of waitpid() */
    long rank;     /* the rank at fault, the first of several; -1: no particular one */
    char host[64]; /* the host at fault; "": no particular one */
    double quiet;  /* s since any rank made progress */
    double limit;  /* s of 'quiet' that count as a hang */
    char why[256];
};

/* Whether a rank is connected and its program runs. */
bool heal_lives (const struct heal_seen *r);

/* Seconds since any rank made progress.  'output' is when the training last printed, logged or
 * saved anything.
 */
double heal_quiet (const struct heal_seen *ranks, size_t n, double output, double now);

/* Whether the training is past its start. */
bool heal_has_begun (const struct heal_limits *limits);

/* Find the first thing that went wrong.  A rank that ends because another one failed ends later, so
 * the earliest is to blame.  Fills in 'v'; its cause is HEAL_NONE if all is well.
 */
void heal_judge (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits,
                 const struct heal_learned *learned, double output, double now,
                 struct heal_verdict *v);

/* ---- how to react to each cause ---- */

struct heal_row {
    const char *word;  /* cause of the event in the log, a word of condition_reasons */
    bool takes_stacks; /* take the ranks' stacks before ending the step */
    bool leaves;       /* abandon the step, because the lost host cannot end it */
    bool checks;       /* check the rank's node before the next attempt */
    bool is_free;      /* do not count the failure towards worker.max_restarts */
};
extern const struct heal_row heal_rows[HEAL_CAUSES];
