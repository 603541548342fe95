/* SPDX-License-Identifier: Apache-2.0 */
/* Run a whole search against a made-up metric. */
#pragma once

#include "searcher/searcher.h"

/* Of a configuration: the trials, and the ladder that they climb. */
#define LADDER(trials, length, factor, rungs)                                                      \
    .max_trials = trials, .max_length = length, .divisor = factor, .max_rungs = rungs

enum sweep_event {
    EVENT_BEGIN,
    EVENT_TELL,
    EVENT_EXIT,
    EVENT_REJECT,
    EVENT_REPORT,
    EVENT_SPEND, /* the value are the seconds */
};

struct event {
    enum sweep_event what;
    struct search_op op;
    double value;
    double x[8];
    int objectives;                /* above 1: told are ... */
    double values[OBJECTIVES_MAX]; /* ... these */
    double progress;               /* of the search, after it */
};

struct sweep {
    /* given */
    struct search_config config;
    const struct param *params;
    size_t n;
    double (*metric) (const struct sweep *w, long trial, int64_t length);
    /* of several objectives; config.objectives says how many */
    void (*metrics) (const struct sweep *w, long trial, double *values);
    bool (*fails) (const struct sweep *w, long trial, int segment);
    bool (*rejects) (const struct sweep *w, long trial, int segment);
    double (*seconds) (const struct sweep *w, long trial);
    int64_t report;                 /* a trial reports the metric every so much */
    const double *values;           /* for metric() */
    long workers;                   /* 0: as many as the searcher wants */
    uint64_t shuffle;               /* segments end in random order, 0: as begun */
    bool (*more) (struct sweep *w); /* after each event; false: stop here */

    /* found */
    struct searcher *s;
    long trials;
    int *segments;           /* of each trial, from 1, ended or not */
    int64_t *length;         /* trained, failed segments included */
    int64_t *first;          /* length of the first segment */
    int64_t *at;             /* last report */
    struct search_op *begun; /* how a trial was created */
    double (*x)[8];          /* points */
    struct event *events;
    size_t n_events;
    struct search_op *running;
    long n_running, most_running;
};

/* Create the searcher and drive it to its end.  After each event the state is
 * replaced by a copy, and the progress is checked.
 */
void sweep_run (struct sweep *w);
void sweep_free (struct sweep *w);

void sweep_apply (struct searcher *s, const struct event *e);

/* Trials that were trained to 'length' and no further. */
long sweep_count (const struct sweep *w, int64_t length);

/* Are the states equal? */
bool same_bytes (const struct searcher *a, const struct searcher *b);

/* How many times as long a sanitizer makes it: so many times fewer seeds. */
#ifdef __SANITIZE_ADDRESS__
enum { SLOWER = 3 };
#else
enum { SLOWER = 1 };
#endif

/* Random numbers of the tests, 0 .. bound - 1. */
uint64_t sweep_random (uint64_t *state, uint64_t bound);

/* The same of a trial and its length, for a metric. */
uint64_t sweep_noise (const struct sweep *w, long trial, int64_t length, uint64_t bound);

/* For sweep.metric: the trial's of sweep.values; one that is of no interest. */
double sweep_given (const struct sweep *w, long trial, int64_t length);
double sweep_plain (const struct sweep *w, long trial, int64_t length);

/* For sweep.fails: one segment of 12. */
bool sweep_seldom (const struct sweep *w, long trial, int segment);
