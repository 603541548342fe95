/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a search, and what a method is. */
#ifndef SEARCHER_STATE_H
#define SEARCHER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/ladder.h"
#include "searcher/searcher.h"
#include "searcher/space.h"

enum { TRIALS_MAX = 10000000 };

enum trial_state {
    TRIAL_RUNNING, /* a segment of it is being trained */
    TRIAL_PAUSED,  /* it waits in its rung */
    TRIAL_DUE,     /* promoted to its rung, to be trained */
    TRIAL_ENDED,
};

struct trial {
    uint8_t state;
    uint8_t rung; /* it is trained to, or waits in */
    uint8_t bracket;
    uint8_t unused;
};

/* Bytes of a result: its value, its trial and its rank. */
enum { RESULT_SIZE = sizeof (double) + 2 * sizeof (int32_t) };

/* The results at one length in one bracket.  Where they lie, see asha.c. */
struct rung {
    int64_t results;
    int64_t top; /* the best of them, whose share was promoted */
};

/* A bracket is a search of its own that starts at the rung 'first'. */
struct bracket {
    int64_t trials; /* at most */
    int64_t limit;  /* of trials at once */
    int64_t created, running, due;
    int64_t results; /* offset in the state */
    int32_t first;
    int32_t highest; /* rung that has a result, -1: none */
    struct rung rung[RUNGS_MAX];
};

/* What searcher_create() was given. */
struct request {
    const struct search_config *config;
    const struct param *params;
    size_t n;
};

/* What a method makes of a request before there is any state. */
struct plan {
    struct ratio divisor;
    int rungs;
    int64_t length[RUNGS_MAX];
    int brackets;
    struct bracket bracket[RUNGS_MAX];
};

/* One flat block: this, then the arrays at the offsets. */
struct searcher {
    int64_t size;
    uint64_t seed;
    int64_t kind; /* index in searcher_kinds */
    int64_t smaller_is_better;
    int64_t limit; /* of trials at once, 0: none */
    int64_t trials, created, running;
    int64_t due, due_head; /* ring of promoted trials, first come first out */
    int64_t n, rungs, brackets;
    struct ratio divisor;
    int64_t length[RUNGS_MAX];
    double work, work_open, work_planned; /* in units of length */
    double progress;
    int64_t at_dims, at_brackets, at_trials, at_due;
    int64_t at_points, at_values; /* 0: the method does not keep them */
};

/* All but 'plan' and 'point' may be NULL. */
struct searcher_ops {
    /* As searcher_check(), for the keys and parameters only this needs. */
    const char *(*check) (const struct request *request, int *param);
    /* Fill a zeroed plan. */
    void (*plan) (const struct request *request, struct plan *plan);
    /* Add to the dims what the method needs. */
    void (*prepare) (const struct request *request, struct dim *dims);
    /* Points and full-length values of the trials are kept in the state. */
    bool keeps;
    /* Write the point of a fresh trial. */
    void (*point) (const struct searcher *s, long trial, double *x);
    /* The segment that ended was below the top rung. */
    void (*report) (struct searcher *s, long trial, double value);
};

extern const struct searcher_ops searcher_single;
extern const struct searcher_ops searcher_grid;
extern const struct searcher_ops searcher_random;
extern const struct searcher_ops searcher_sobol;
extern const struct searcher_ops searcher_lhs;
extern const struct searcher_ops searcher_tpe;
extern const struct searcher_ops searcher_gp;
extern const struct searcher_ops searcher_asha;
extern const struct searcher_ops searcher_adaptive_asha;

static inline void *searcher_at (const struct searcher *s, int64_t offset)
{
    return (char *)s + offset;
}

static inline struct dim *searcher_dims (const struct searcher *s)
{
    return searcher_at (s, s->at_dims);
}

static inline struct bracket *searcher_bracket (const struct searcher *s, int i)
{
    return (struct bracket *)searcher_at (s, s->at_brackets) + i;
}

/* 'id' counts from 1. */
static inline struct trial *searcher_trial (const struct searcher *s, long id)
{
    return (struct trial *)searcher_at (s, s->at_trials) + id - 1;
}

/* What is kept: the point of a trial, ... */
static inline double *searcher_point (const struct searcher *s, long id)
{
    return (double *)searcher_at (s, s->at_points) + (id - 1) * s->n;
}

/* ... and its value, such that smaller is better: NaN while it is trained,
 * infinity if it is a bad trial.
 */
static inline double *searcher_value (const struct searcher *s, long id)
{
    return (double *)searcher_at (s, s->at_values) + id - 1;
}

/* Length of the segment that ends at a rung, of a trial that starts at 'first'
 */
static inline int64_t
segment_length (const int64_t *length, int first, int rung)
{
    return length[rung] - (rung > first ? length[rung - 1] : 0);
}

/* A plan of 'trials' full trainings. */
void plan_flat (struct plan *plan,
                const struct search_config *config,
                int64_t trials);

/* Give a trial that is paused its next segment. */
void searcher_promote (struct searcher *s, long trial);

void random_point (const struct searcher *s, long trial, double *x);
void sobol_point (const struct searcher *s, long trial, double *x);

#endif
