/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a search, and the interface of a method. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "searcher/searcher.h"
#include "searcher/space/constraint.h"
#include "searcher/space/space.h"

/* ---- exact arithmetic of successive halving: rungs, brackets and their trials (ladder.c) ---- */

/* All arithmetic is exact, with integers: floor (log (243) / log (3)) is 4 in floating point. */

enum { RUNGS_MAX = 32 }; /* also of brackets */

/* The divisor as the fraction p / q. */
struct ratio {
    uint32_t p, q;
};

/* Convert 'divisor' as the decimal number that the user wrote: 2.2 is 11 / 5.
 * Returns NULL, or a sentence that says what is wrong with it.
 */
const char *ratio_from (struct ratio *d, double divisor);

/* floor (n / d) */
int64_t ratio_share (struct ratio d, int64_t n);

/* Number of possible rungs: at most 'rungs', d^(rungs - 1) <= length, trials. */
int ladder_height (struct ratio d, long rungs, int64_t length, int64_t trials);

/* max (floor (length / d^steps), 1): the length of the rung 'steps' below the top. */
int64_t ladder_rung (struct ratio d, int64_t length, int steps);

/* Write the lengths of the rungs, shortest first, without duplicates.  Returns
 * how many there are.
 */
int ladder_build (struct ratio d, int rungs, int64_t length, int64_t *out);

/* Append rungs to n of them, each 'd' times as long as the last, up to
 * 'length', which becomes the last one.  Returns how many there are, -1 if
 * there is no room.
 */
int ladder_extend (struct ratio d, int64_t *rungs, int n, int64_t length);

/* Write the heights of the brackets in a mode, highest first.  Returns how many
 * there are, 0 if the mode is unknown.
 */
int bracket_heights (enum search_mode mode, int rungs, int *heights);

/* Divide 'total' trials among n brackets by the weights d^(height - 1) /
 * height, rounded down, at least 1 each, the remainder to the first.  Returns
 * the number of brackets that get trials.
 */
int bracket_trials (struct ratio d, int64_t total, const int *heights, int n, int64_t *trials);

/* Divide 'limit' concurrent trials among n brackets, at least 1 each; without a
 * limit (0) each bracket may run all of its trials.
 */
void bracket_limits (int64_t limit, const int64_t *trials, int n, int64_t *limits);

/* min (floor (d^(height - 1)), max): number of trials that fill a bracket. */
int64_t bracket_width (struct ratio d, int height, int64_t max);

enum { TRIALS_MAX = 10000000, BRACKETS_MAX = 1000, EARLIER_MAX = 32 };

#define LENGTH_MAX (INT64_C (1) << 53)

enum search_trial_state {
    TRIAL_RUNNING, /* a segment of it is being trained */
    TRIAL_PAUSED,  /* it waits in its rung, in the top one for ever */
    TRIAL_DUE,     /* promoted to its rung, to be trained */
    TRIAL_ENDED,   /* badly, too early, or another one took its place */
    TRIAL_FAILED,  /* by searcher_exit() */
};

struct search_trial {
    uint8_t state;
    uint8_t rung;  /* it is trained to, or waits in */
    uint8_t stops; /* it is being trained but should not */
    uint8_t replaced;
    uint8_t own; /* its first result that is its own: a clone's rung; pbt */
    /* Of full trainings, where max_length has changed: its segment ends at, or
     * began at, earlier[i - 1].  0: as its rung has it.
     */
    uint8_t goal, from;
    int16_t bracket;
};

/* Bytes of a result: its value, its trial and its rank. */
enum { RESULT_SIZE = sizeof (double) + 2 * sizeof (int32_t) };

/* The results at one length in one bracket.  For their layout see rung.h. */
struct rung {
    int64_t results;
    int64_t top; /* the best of them, whose share was promoted */
    int64_t promoted;
};

/* A bracket is a search of its own that starts at the rung 'first'. */
struct bracket {
    int64_t trials;   /* at most; a rejected one makes it one more */
    int64_t capacity; /* what 'trials' is without these */
    int64_t limit;    /* of trials at once */
    int64_t created, running, due, rejected;
    int64_t results; /* offset in the state */
    int32_t first;
    int32_t highest; /* rung that has a result, -1: none */
    struct rung rung[RUNGS_MAX];
};

/* The arguments of searcher_create(). */
struct search_request {
    const struct search_config *config;
    const struct param *params;
    size_t n;
};

/* What a method makes of a request before there is a state. */
struct search_plan {
    struct ratio divisor;
    int rungs;
    int64_t length[RUNGS_MAX];
    int brackets;
    struct bracket *bracket; /* BRACKETS_MAX */
    bool whole;              /* each trial goes through all rungs */
    int64_t spare;           /* trials that may come beyond all brackets' */
};

/* One flat block: this struct, then the arrays at the offsets. */
struct searcher {
    int64_t size;
    uint64_t seed;
    int64_t kind;     /* index in searcher_kinds */
    int64_t sampler;  /* the same: whose points they are */
    int64_t limit;    /* of trials at once, 0: none */
    int64_t capacity; /* trials there can be, rejected ones included */
    int64_t trials, created, running;
    int64_t due, due_head; /* ring of promoted trials, first come first out */
    int64_t n, rungs, brackets;
    struct ratio divisor;
    int64_t length[RUNGS_MAX];
    int64_t earlier[EARLIER_MAX], nearlier; /* lengths of full trainings */
    double work, work_open, work_planned;   /* in units of length */
    double progress;
    int64_t top;                /* rung to which trials are promoted */
    int64_t objectives, larger; /* bits of those that are to be maximised */
    int64_t width;              /* values of a trial: one a rung or objective */
    int64_t repeats, outer;     /* trials that are being trained with repeats */
    int64_t halves, half;       /* trials whose repeats have not all begun: how many,
                                   and the first of them, 0: none */
    int64_t min_length, population;
    double spent, max_seconds;
    int64_t cost_aware;
    int64_t known, points; /* from before; to be tried first */
    int64_t at_dims, at_when, at_constraint;
    int64_t at_first;  /* points to be tried first */
    int64_t at_sample; /* what else the sampler keeps */
    /* From here on it may grow: see searcher_extend(). */
    int64_t at_brackets, at_trials, at_due;
    int64_t at_points, at_values; /* 0: the method does not keep them */
    int64_t at_seconds;           /* of each trial, 0: not kept */
    int64_t at_schedule;          /* what else the scheduler keeps */
    int64_t at_repeats;
};

/* The repeats of a trial: one bit for each that has ended, and that failed for
 * good, in the current segment.
 */
struct repeat {
    double sum[OBJECTIVES_MAX];
    uint64_t ended, failed;
    int32_t begun;
    int32_t rejected;
};

/* How far trials are trained, and in which order.  All members but 'plan' may be NULL. */
struct search_scheduler {
    /* As searcher_check(), for keys and parameters that only this scheduler needs; '*param' is
     * the index of the parameter.
     */
    const char *(*check) (const struct search_request *request, int *param);
    /* Fill in a zeroed plan. */
    void (*plan) (const struct search_request *request, struct search_plan *plan);
    /* Brackets are filled one after another, not evenly. */
    bool in_order;
    /* The points are fixed: a rejected one is not replaced. */
    bool fixed;
    /* The state keeps points and values of the trials. */
    bool keeps;
    /* Bytes of the scheduler's own state. */
    int64_t (*room) (const struct search_request *request, const struct search_plan *plan);
    void (*start) (struct searcher *s, const struct search_request *request);
    /* A segment below the top rung has ended. */
    void (*ended) (struct searcher *s, long trial, double value);
    /* A value was reported during training; returns true if the trial should stop. */
    bool (*watch) (struct searcher *s, long trial, int64_t length, double value);
    /* Fill in 'from' of a fresh trial; NULL or false: it starts from nothing. */
    bool (*clone) (const struct searcher *s, struct search_op *op, double *x);
    /* 'op' is the next segment of a trial that is due: a fresh trial may take its place. */
    void (*relieve) (const struct searcher *s, struct search_op *op, double *x);
    /* A fresh trial begins; returns false if it does not fit.  NULL: none has a 'from'. */
    bool (*begun) (struct searcher *s, const struct search_op *op);
    /* A trial was rejected: none of its results counts any more.  NULL: a trial
     * that has results below its rung is not replaced.
     */
    void (*forget) (struct searcher *s, long trial);
    /* A failed trial is being trained again. */
    void (*revived) (struct searcher *s, long trial);

    /* For searcher_extend().  Append rungs to the plan, up to 'length'; NULL:
     * full trainings get a new length, others a longer ladder.  Returns -1 if
     * there is no room.
     */
    int (*lengthen) (struct search_plan *plan, int64_t length);
    /* Add brackets for 'trials' more trials; NULL: the existing brackets grow. */
    void (*widen) (struct search_plan *plan, int64_t trials);
    /* Bytes of its own state in 's', of which only the header exists yet, ... */
    int64_t (*regrow) (const struct searcher *s, const struct search_plan *plan,
                       const struct searcher *old);
    /* ... and move everything but that state.  NULL: it stays as it is. */
    void (*move) (struct searcher *s, const struct searcher *old);
    /* The state is complete: give trials their next segment.  The top rung was 'top'. */
    void (*extended) (struct searcher *s, int top);
};

/* Where points come from.  All members but 'point' may be NULL. */
struct search_sampler {
    const char *(*check) (const struct search_request *request, int *param);
    bool keeps;
    int64_t (*room) (const struct search_request *request);
    /* The state is complete; the sampler's own part is zero. */
    void (*start) (struct searcher *s);
    /* Write the point of a fresh trial, all parameters: the caller masks inactive ones. */
    void (*point) (const struct searcher *s, long trial, double *x);
    /* A fully trained trial has a value. */
    void (*learn) (struct searcher *s, long trial);
    /* The number of trials has changed. */
    void (*extended) (struct searcher *s);
};

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
static inline struct search_trial *searcher_trial (const struct searcher *s, long id)
{
    return (struct search_trial *)searcher_at (s, s->at_trials) + id - 1;
}

/* Kept data: the point of a trial, ... Results of an earlier search have the
 * ids 0, -1, ... 1 - s->known.
 */
static inline double *searcher_point (const struct searcher *s, long id)
{
    return (double *)searcher_at (s, s->at_points) + (id - 1 + s->known) * s->n;
}

/* ... and its values, one for each rung or objective, negated if larger is
 * better: NaN if there is none (yet), infinity for a bad trial.
 */
static inline double *searcher_values (const struct searcher *s, long id)
{
    return (double *)searcher_at (s, s->at_values) + (id - 1 + s->known) * s->width;
}

/* The value of a full training. */
static inline double searcher_value (const struct searcher *s, long id)
{
    return searcher_values (s, id)[s->rungs - 1];
}

static inline long searcher_first (const struct searcher *s)
{
    return 1 - s->known;
}

static inline double *searcher_seconds (const struct searcher *s, long id)
{
    return (double *)searcher_at (s, s->at_seconds) + id - 1;
}

/* Each trial is trained in full: nothing is compared on the way. */
static inline bool searcher_is_full (const struct searcher *s)
{
    return s->divisor.p == s->divisor.q && s->rungs == 1;
}

/* Length at which the segment of a trial ends, ... */
static inline int64_t searcher_goal (const struct searcher *s, const struct search_trial *t)
{
    return t->goal ? s->earlier[t->goal - 1] : s->length[t->rung];
}

/* ... and at which it begins. */
static inline int64_t searcher_start (const struct searcher *s, const struct search_trial *t)
{
    if (t->from)
        return s->earlier[t->from - 1];
    return t->rung > searcher_bracket (s, t->bracket)->first ? s->length[t->rung - 1] : 0;
}

static inline int64_t searcher_segment (const struct searcher *s, const struct search_trial *t)
{
    return searcher_goal (s, t) - searcher_start (s, t);
}

/* Length of the segment that ends at a rung, for a trial that starts at rung 'first'. */
static inline int64_t segment_length (const int64_t *length, int first, int rung)
{
    return length[rung] - (rung > first ? length[rung - 1] : 0);
}

/* The user's value of an objective, negated if larger is better. */
static inline double searcher_objective (const struct searcher *s, int64_t k, double value)
{
    return !isfinite (value) ? INFINITY : s->larger >> k & 1 ? -value : value;
}

/* ---- plans of a method, made before there is a state (plan.c) ---- */

/* Plan 'trials' full trainings. */
void plan_flat (struct search_plan *plan, const struct search_config *config, int64_t trials);

/* As constraint_compile(), for the request's constraint. */
const char *plan_constraint (const struct search_request *request, struct constraint *c,
                             int *column);

/* ---- points of a search: active parameters, and the constraint (point.c) ---- */

/* Set inactive parameters to NaN. */
void point_mask (const struct searcher *s, double *x);

/* Whether it is a point of the space, masked as it should be. */
bool point_fits (const struct searcher *s, const double *x);

/* Whether the constraint allows a masked point. */
bool point_allowed (const struct searcher *s, const double *x);

/* Whether no trial has this point yet. */
bool point_is_new (const struct searcher *s, const double *x);

/* Whether random draws can find an allowed point. */
bool point_possible (const struct searcher *s);

/* Draw the point of a trial, not masked; an allowed one if possible at all. */
void point_random (const struct searcher *s, long trial, double *x);

/* ---- trials that wait for their next segment, first in, first out (waiting_trials.c) ---- */

/* Number 'i' of the trials that are due, the first promoted first. */
int32_t *due_trial (const struct searcher *s, int64_t i);

/* Schedule the next segment of a paused trial: to the next rung, ... */
void due_promote (struct searcher *s, long trial);

/* ... or to the current length of full trainings. */
void due_go_on (struct searcher *s, long trial);

/* Undo due_promote(): the trial waits at the rung below again. */
void due_demote (struct searcher *s, long trial);

/* Remove a trial that is due from the ring. */
void due_remove (struct searcher *s, long trial);
