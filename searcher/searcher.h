/* SPDX-License-Identifier: Apache-2.0 */
/* Search a space of hyperparameters: ask for a trial, observe its value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library is pure: no I/O, clock, threads or global state, and it needs
 * only libc's memory and string functions and libm.  The same seed and the
 * same sequence of events give the same decisions, bit for bit.
 *
 * A caller drives it with events.  searcher_ask() only looks: it says what
 * the searcher would do next.  Nothing changes until the caller confirms
 * that with searcher_begin(), so that several processes can race to decide
 * and all but the winner drop their answer.  Whoever applies the same events
 * in the same order reaches the same state, which is how a decision log is
 * replayed.
 *
 * Words: a trial is one point of the space.  A segment is the training of a
 * trial from the length it has to the next one, in the user's unit (epochs,
 * batches).  A rung is a length at which trials are compared.
 */

/* ---- the space ---- */

enum param_type {
    PARAM_FLOAT,       /* uniform in [min, max] */
    PARAM_INT,         /* uniform over the integers min .. max, or over their
                        * logarithms if 'base' is above 1 (grid: evenly) */
    PARAM_LOG,         /* base^e, e uniform in [min, max] */
    PARAM_CATEGORICAL, /* one of 'choices' values; a constant has 1 */
};

struct param {
    const char *name; /* "lr", nested: "optimizer.lr"; not copied */
    enum param_type type;
    double min, max; /* of the exponent where the type is PARAM_LOG */
    double base;     /* PARAM_LOG; PARAM_INT: 0 unless logarithmic */
    long choices;    /* PARAM_CATEGORICAL */
    long count;      /* points of a grid, 0: not given */

    /* What follows may be zero. */
    double step;               /* PARAM_FLOAT, PARAM_INT: only min, min + step, ...; 0: all */
    double mean, deviation;    /* of a normal distribution, cut off at min and
                                  max (of the exponent where the type is
                                  PARAM_LOG); deviation 0: uniform */
    const char *const *labels; /* texts of the choices, for a constraint */
    const char *when;          /* the parameter is active only if this other
                                  one, itself active, has ... */
    const double *when_values; /* ... one of these values */
    long when_count;
};

/* A point is one double a parameter, in the order of the params: the value
 * itself, an integral double for PARAM_INT, the index of the choice (0 ..
 * choices - 1) for PARAM_CATEGORICAL, NaN for one that is not active.
 */

/* ---- a search ---- */

enum search_mode { SEARCH_AGGRESSIVE, SEARCH_STANDARD, SEARCH_CONSERVATIVE };

enum { OBJECTIVES_MAX = 8 };

/* What is known from before: a point, and its value or values. */
struct search_known {
    const double *x;
    const double *values; /* one an objective; not finite: a bad trial */
};

struct search_config {
    const char *name;       /* of a searcher_kind, e.g. "asha" */
    uint64_t seed;          /* of the experiment */
    long max_trials;        /* see NEED_MAX_TRIALS */
    int64_t max_length;     /* length of a full training, >= 1 */
    bool smaller_is_better; /* of the metric */
    double divisor;         /* asha: 1/divisor of a rung is promoted, > 1 and
                               with at most three decimals */
    long max_rungs;         /* asha: at most so many (and 32) */
    enum search_mode mode;  /* adaptive_...: which brackets */
    long max_concurrent;    /* trials at once, 0: as many as the method uses */

    /* What follows may be zero. */
    const char *sampler;              /* where points come from: name of a kind of full
                                         trainings; NULL: as the method has it */
    const char *constraint;           /* which points are allowed: constraint.h */
    const double *points;             /* tried first: ... */
    long npoints;                     /* ... so many points */
    const struct search_known *known; /* from an earlier search */
    long nknown;
    long repeats;                /* each point is trained by so many trials and has
                                    the mean of their values; 0 is 1 */
    double max_seconds;          /* no segment begins once all those that ended took
                                    so long in sum (searcher_spend()); 0: no limit */
    bool cost_aware;             /* prefer points that are expected to take less
                                    time; gp and auto */
    long objectives;             /* values of a trial; 0 is 1 */
    bool larger[OBJECTIVES_MAX]; /* objective k > 0 is to be maximised */
    int64_t min_length;          /* median: no trial is stopped before; pbt: a
                                    generation; 0: chosen */
    long population;             /* cmaes, pbt, nsga2; 0: chosen */
};

/* What a searcher needs beside the space: which keys of search_config. */
enum search_need {
    NEED_MAX_TRIALS = 1 << 0,
    NEED_GRID_COUNT = 1 << 1, /* 'count' of each float and log parameter */
    HAS_RUNGS = 1 << 2,       /* trials are trained in part at first */
    HAS_REPORTS = 1 << 3,     /* trials are stopped by searcher_report() */
    HAS_OBJECTIVES = 1 << 4,  /* takes several */
    CAN_MAX_TRIALS = 1 << 5,  /* max_trials may be given */
    IS_CUSTOM = 1 << 6,       /* the caller replaces each fresh point */
};

struct searcher_kind {
    const char *name;
    const char *help;
    int needs; /* of enum search_need */
    const struct search_scheduler *scheduler;
    const struct search_sampler *sampler;
};

/* All searchers, ended by a row whose name is NULL. */
extern const struct searcher_kind searcher_kinds[];

/* Say what is wrong with a search.
 *
 * Returns NULL if searcher_create() will take it, else a constant sentence
 * ("the lower end of the range is above the upper end").  '*param' is then the
 * index of the parameter that is at fault, -1 if the search_config is, or -1 -
 * column if its constraint is, at that column (from 1).
 */
const char *searcher_check (const struct search_config *config, const struct param *params,
                            size_t n, int *param);

struct searcher;

/* Create a searcher over 'n' parameters.
 *
 * 'config' and 'params' are copied, but not the strings in them.  The state
 * is one flat block of searcher_size() bytes without pointers into itself.
 *
 * Returns NULL on failure with errno set: EINVAL (see searcher_check()),
 * ENOMEM.
 */
struct searcher *searcher_create (const struct search_config *config, const struct param *params,
                                  size_t n);
void searcher_destroy (struct searcher *s);

/* Return a copy that goes on independently, NULL with errno ENOMEM. */
struct searcher *searcher_copy (const struct searcher *s);

/* Size of the state in bytes: two searchers with equal bytes are equal. */
size_t searcher_size (const struct searcher *s);

/* ---- ask and observe ---- */

enum search_answer {
    SEARCH_RUN,  /* train the trial of 'struct search_op' */
    SEARCH_WAIT, /* nothing until a segment that is being trained ends */
    SEARCH_DONE, /* nothing ever again */
};

struct search_op {
    long trial;          /* 1, 2, ... in the order of creation */
    bool fresh;          /* the trial is new: the point says where it lies */
    int64_t length;      /* train it to this total length */
    long from;           /* begin with this trial's checkpoint of the length ... */
    int64_t from_length; /* ... if from is not 0 (pbt) */
};

/* Ask what to do next; changes nothing.  On SEARCH_RUN 'op' is filled and,
 * for a fresh trial, its point is written to x[0 .. n-1].
 */
enum search_answer searcher_ask (const struct searcher *s, struct search_op *op, double *x);

/* The events.  Each returns 0 on success, and -1 with errno EINVAL, and no
 * change, if it does not fit the state (an unknown trial, a result for a
 * segment that is not being trained): a replayed duplicate is harmless.
 */

/* A segment has begun; 'x' as searcher_ask() gave it (ignored if !fresh). */
int searcher_begin (struct searcher *s, const struct search_op *op, const double *x);

/* The segment that ends at 'length' gave the metric, or each objective, its
 * value.  One that is not finite makes a bad trial: it is never promoted, and
 * the search goes on.
 */
int searcher_observe (struct searcher *s, long trial, int64_t length, const double *values);

/* The trial ended for good without a result (it failed too often): a bad
 * trial.
 */
int searcher_exit (struct searcher *s, long trial);

/* The trial's point makes no sense, as its trainer says: a bad trial that does
 * not count, another one replaces it (for as many as max_trials).
 */
int searcher_reject (struct searcher *s, long trial);

/* A trial that searcher_exit() ended is being trained again, to the length at
 * which it failed: it can be observed, or exit, as before.  EINVAL for any
 * other trial, and where another repeat of its point was rejected.
 *
 * Its bad value is forgotten.  What the search decided meanwhile stands: the
 * clone that took its place in a population goes on, too, and a model observes
 * the trial once more.
 */
int searcher_revive (struct searcher *s, long trial);

/* The trial, which is being trained, goes on at another point 'x': what is
 * observed of it belongs to that one.  EINVAL if it is not being trained, 'x'
 * is no point of the space or not allowed, and with repeats.
 */
int searcher_move (struct searcher *s, long trial, const double *x);

/* The greatest value of a numeric parameter that is at most half of 'x'; NaN if
 * there is none.
 */
double searcher_half (const struct param *param, double x);

/* The metric at 'length' of a segment that goes on; lengths grow.  Methods
 * that stop trials early (HAS_REPORTS) learn from it; for others it does
 * nothing.
 */
int searcher_report (struct searcher *s, long trial, int64_t length, double value);

/* Should the trial, which is being trained, stop now?  It is then observed with
 * the length that it has.
 */
bool searcher_stops (const struct searcher *s, long trial);

/* The last segment of the trial took so many seconds (all of its GPUs at
 * once).  For max_seconds and cost_aware.
 */
int searcher_spend (struct searcher *s, long trial, double seconds);

/* The search goes on, whether it was done or not, with other limits: 0 leaves
 * one as it is.  All that was observed stays, and segments that are being
 * trained end where they were to end.  '*s' is replaced; it stays on failure.
 *
 * max_trials may be less than what there is: no new trial begins.  Searchers
 * that do not take it (single, grid, pbt) ignore it.  hyperband and its like
 * go on with their next brackets, halving with one of the trials that are
 * added, lhs with a hypercube of those that have not begun; others just have
 * more trials.
 *
 * max_length may not be less.  Rungs stay where they are, whatever max_rungs
 * was, and there are more above: 'divisor' times as long each, the last
 * max_length.  The best go on to them from the old top rung as from any other,
 * in pbt generation by generation.  Where trials are trained in full, each
 * that has a good value goes on, before there are new ones: its value is the
 * one at the greater length then.
 *
 * max_seconds is of the whole search.
 *
 * -1 with errno EINVAL (a limit that searcher_check() would not take; a
 * shorter max_length; more than 32 rungs or changes of the length; more than
 * 1000 brackets) or ENOMEM.
 */
int searcher_extend (struct searcher **s, long max_trials, int64_t max_length, double max_seconds);

/* config->max_seconds are spent: no segment begins any more. */
bool searcher_is_spent (const struct searcher *s);

/* Part of the work that is done, 0 to 1, 1 at the end.  It goes back only when
 * there is more to do: by searcher_revive() and searcher_extend().
 */
double searcher_progress (const struct searcher *s);

/* ---- looking ahead ---- */

struct search_rung {
    int64_t length;
    long trials; /* that are expected to end at this length */
};

/* What a search will cost if every segment succeeds and each rung promotes
 * its share: writes at most 'max' rungs, shortest first.
 *
 * Returns how many rungs there are, -1 with errno EINVAL.
 */
int searcher_preview (const struct search_config *config, const struct param *params, size_t n,
                      struct search_rung *rungs, size_t max);

/* Seed for the training of 'trial', 0 .. 2^31-1, the same for each attempt. */
uint32_t searcher_trial_seed (uint64_t seed, long trial);
