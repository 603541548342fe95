/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the ranks of a step, by what they said: pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A rank as the worker sees it; times are of one clock. */
struct heal_seen {
    bool came;     /* it has connected */
    bool over;     /* its program has ended ... */
    int status;    /* ... with this status of waitpid() */
    bool cut;      /* its connection has ended without a word ... */
    bool lost;     /* ... or its host acknowledges nothing any more */
    double at;     /* when that happened (over, cut, lost) */
    double moved;  /* when it last made progress */
    double cores;  /* that it used lately */
    double sleeps; /* s until a timer of its own wakes it at the latest; 0: it has none */
    char state;    /* of its training process, as 'T'; 0: not known */
    const char *host;
};

enum heal_cause {
    HEAL_NONE,
    HEAL_DIED,    /* a rank has ended badly */
    HEAL_CUT,     /* the processes of a rank are gone */
    HEAL_STOPPED, /* a rank is stopped (SIGSTOP), and the others wait for it */
    HEAL_HANG,    /* no rank makes progress */
    HEAL_LOST,    /* a node does not answer */
    HEAL_CAUSES
};

/* How long this run is quiet, as it was seen so far. */
struct heal_learned {
    double longest; /* gap of all ranks together that ended, s */
    double gap;     /* as long as the present one was at the last look */
};
void heal_learn (struct heal_learned *l, double quiet);

struct heal_limits {
    double start; /* until it has printed, logged or saved anything, s */
    double least; /* once it has a rhythm, whatever was learned */
    bool fixed;   /* nothing is learned */
    long signs;   /* how often it was seen to print, log or save */
    bool may_end; /* how a rank ends is for others to judge: it has a role */
};

struct heal_verdict {
    enum heal_cause cause;
    int status;    /* HEAL_DIED: of waitpid() */
    long rank;     /* the first of them; -1: none in particular */
    char host[64]; /* "": none in particular */
    double quiet;  /* s without progress ... */
    double limit;  /* ... that are too long */
    char why[256];
};

/* Whether a rank is connected, and its program at work. */
bool heal_lives (const struct heal_seen *r);

/* Seconds since any rank made progress; the training's own signs (output,
 * metrics, files) were last seen at 'output'.
 */
double heal_quiet (const struct heal_seen *ranks, size_t n, double output, double now);

/* Whether it is past its start. */
bool heal_has_begun (const struct heal_limits *limits);

/* The first thing that went wrong, by time; a rank that another took down is
 * later than that.
 */
void heal_judge (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits,
                 const struct heal_learned *learned, double output, double now,
                 struct heal_verdict *v);

/* ---- the table of what happens when ---- */

struct heal_row {
    const char *word;  /* of the event's cause */
    bool takes_stacks; /* before the step is ended */
    bool leaves;       /* the step is left behind: its host cannot end it */
    bool checks;       /* the node of the rank, before the next attempt */
    bool is_free;      /* does not count towards worker.max_restarts */
};
extern const struct heal_row heal_rows[HEAL_CAUSES];
