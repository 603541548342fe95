/* SPDX-License-Identifier: Apache-2.0 */
/* Run a whole search with an artificial metric. */
#pragma once

#include "searcher/searcher.h"

/* A configuration; smaller values are better. */
#define SEARCH(kind, ...)                                                                          \
    {                                                                                              \
        .name = kind, .smaller_is_better = true, __VA_ARGS__                                       \
    }

/* Configuration of the trials and the rungs. */
#define LADDER(trials, length, factor, rungs)                                                      \
    .max_trials = trials, .max_length = length, .divisor = factor, .max_rungs = rungs

enum sweep_event {
    EVENT_BEGIN,
    EVENT_TELL,
    EVENT_EXIT,
    EVENT_REJECT,
    EVENT_REPORT,
    EVENT_SPEND, /* value: the seconds */
};

struct event {
    enum sweep_event what;
    struct search_op op;
    double value;
    double x[8];
    int objectives;                /* above 1: the trial has ... */
    double values[OBJECTIVES_MAX]; /* ... these values */
    double progress;               /* of the search, after this event */
};

struct sweep {
    /* set by the test */
    struct search_config config;
    const struct param *params;
    size_t n;
    double (*metric) (const struct sweep *w, long trial, int64_t length);
    /* used instead of metric() if config.objectives is above 1 */
    void (*metrics) (const struct sweep *w, long trial, double *values);
    bool (*fails) (const struct sweep *w, long trial, int segment);
    bool (*rejects) (const struct sweep *w, long trial, int segment);
    double (*seconds) (const struct sweep *w, long trial);
    int64_t report;                 /* interval between the reports of a trial, 0: none */
    const double *values;           /* for sweep_given() */
    long workers;                   /* 0: as many as the searcher wants */
    uint64_t shuffle;               /* seed for a random order of ends; 0: order of starts */
    bool (*more) (struct sweep *w); /* called between events; false stops the sweep */

    /* set by sweep_run() */
    struct searcher *s;
    long trials;
    int *segments;           /* started, per trial, from index 1 */
    int64_t *length;         /* trained, including failed segments */
    int64_t *first;          /* length of the first segment */
    int64_t *at;             /* last report */
    struct search_op *begun; /* the operation that created each trial */
    double (*x)[8];          /* points */
    struct event *events;
    size_t n_events;
    struct search_op *running;
    long n_running, most_running;
};

/* Create the searcher and run the search to its end.  After each event, replace the state by a
 * copy and check the progress.
 */
void sweep_run (struct sweep *w);
void sweep_free (struct sweep *w);

/* Begin the next trial, at 'x' unless it is NULL. */
struct search_op sweep_next (struct searcher *s, double *x);

void sweep_apply (struct searcher *s, const struct event *e);

/* Number of trials that were trained exactly to 'length'. */
long sweep_count (const struct sweep *w, int64_t length);

/* Return whether the two states are equal. */
bool same_bytes (const struct searcher *a, const struct searcher *b);

/* Divide the number of seeds by this, because sanitizers slow the tests down. */
#ifdef __SANITIZE_ADDRESS__
enum { SLOWER = 3 };
#else
enum { SLOWER = 1 };
#endif

/* A random number from 0 to bound - 1. */
uint64_t sweep_random (uint64_t *state, uint64_t bound);

/* A random number that depends only on the seed, the trial and the length. */
uint64_t sweep_noise (const struct sweep *w, long trial, int64_t length, uint64_t bound);

/* For sweep.metric: the trial's entry in sweep.values; a value that does not matter. */
double sweep_given (const struct sweep *w, long trial, int64_t length);
double sweep_plain (const struct sweep *w, long trial, int64_t length);

/* For sweep.fails: about one segment in 12. */
bool sweep_seldom (const struct sweep *w, long trial, int segment);
