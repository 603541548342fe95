/* SPDX-License-Identifier: Apache-2.0 */
/* Hyperparameter search: ask for a trial, observe its value. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The library is pure: it has no I/O, clock, threads or global state, and needs
 * only libm and libc's memory and string functions.  The same seed and the same
 * sequence of events give the same decisions, bit for bit.
 *
 * The caller drives it with events.  searcher_ask() returns what the searcher
 * would do next and changes nothing.  The caller confirms the answer with
 * searcher_begin(), so that several processes can race to decide and all but
 * the winner drop their answer.  Every process that applies the same events in
 * the same order reaches the same state; this is how a decision log is replayed.
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
    PARAM_CATEGORICAL, /* one of 'choices' values; 1 for a constant */
};

struct param {
    const char *name; /* "lr", nested: "optimizer.lr"; not copied */
    enum param_type type;
    double min, max; /* of the exponent where the type is PARAM_LOG */
    double base;     /* PARAM_LOG; PARAM_INT: 0 unless logarithmic */
    long choices;    /* PARAM_CATEGORICAL */
    long count;      /* grid points, 0: not given */

    /* The members below may be zero. */
    double step;               /* PARAM_FLOAT, PARAM_INT: only min, min + step, ...; 0: all */
    double mean, deviation;    /* of a normal distribution, truncated at min and
                                  max (of the exponent if the type is PARAM_LOG);
                                  deviation 0: uniform */
    const char *const *labels; /* texts of the choices, for a constraint */
    const char *when;          /* active only if this other parameter is active
                                  and has ... */
    const double *when_values; /* ... one of these values */
    long when_count;
};

/* A point has one double for each parameter, in the order of the params: the
 * value itself (an integral double for PARAM_INT), the index of the choice (0 ..
 * choices - 1) for PARAM_CATEGORICAL, NaN if the parameter is inactive.
 */

/* ---- a search ---- */

enum search_mode { SEARCH_AGGRESSIVE, SEARCH_STANDARD, SEARCH_CONSERVATIVE };

enum { OBJECTIVES_MAX = 8 };

/* A result of an earlier search. */
struct search_known {
    const double *x;
    const double *values; /* one for each objective; not finite: a bad trial */
};

struct search_config {
    const char *name;       /* of a searcher_kind, e.g. "asha" */
    uint64_t seed;          /* of the experiment */
    long max_trials;        /* see NEED_MAX_TRIALS */
    int64_t max_length;     /* length of a full training, >= 1 */
    bool smaller_is_better; /* of the metric */
    double divisor;         /* asha: 1/divisor of a rung is promoted; > 1, with at
                               most three decimals */
    long max_rungs;         /* asha: upper limit, at most 32 */
    enum search_mode mode;  /* adaptive_...: which brackets */
    long max_concurrent;    /* running trials, 0: as many as the method uses */

    /* The members below may be zero. */
    const char *sampler;              /* name of a kind with full trainings that
                                         chooses the points; NULL: the method's own */
    const char *constraint;           /* which points are allowed: constraint.h */
    const double *points;             /* points to be tried first: ... */
    long npoints;                     /* ... their number */
    const struct search_known *known; /* from an earlier search */
    long nknown;
    long repeats;                /* trials that train each point; its value is the
                                    mean of theirs; 0 is 1 */
    double max_seconds;          /* no segment begins once the ended ones took this
                                    long in sum (searcher_spend()); 0: no limit */
    bool cost_aware;             /* gp and auto: prefer points that are expected to
                                    take less time */
    long objectives;             /* values of a trial; 0 is 1 */
    bool larger[OBJECTIVES_MAX]; /* maximise objective k > 0 */
    int64_t min_length;          /* median: no trial stops earlier; pbt: length of
                                    a generation; 0: chosen automatically */
    long population;             /* cmaes, pbt, nsga2; 0: chosen automatically */
};

/* What a searcher needs in addition to the space, and what it can do. */
enum search_need {
    NEED_MAX_TRIALS = 1 << 0,
    NEED_GRID_COUNT = 1 << 1, /* 'count' of each float and log parameter */
    HAS_RUNGS = 1 << 2,       /* trials are first trained in part */
    HAS_REPORTS = 1 << 3,     /* values passed to searcher_report() stop trials */
    HAS_OBJECTIVES = 1 << 4,  /* supports several objectives */
    CAN_MAX_TRIALS = 1 << 5,  /* max_trials is optional */
    IS_CUSTOM = 1 << 6,       /* the caller replaces each fresh point */
};

struct searcher_kind {
    const char *name;
    const char *help;
    int needs; /* of enum search_need */
    const struct search_scheduler *scheduler;
    const struct search_sampler *sampler;
};

/* All searchers; the name of the last row is NULL. */
extern const struct searcher_kind searcher_kinds[];

/* Where a search is wrong. */
struct search_mistake {
    int param;  /* index of the parameter; -1: in search_config ... */
    int column; /* ... in its constraint, at this column, counted from 1; 0: elsewhere */
};

/* Validate a search.
 *
 * Returns NULL if searcher_create() will accept it, else a constant sentence
 * that says what is wrong ("the lower end of the range is above the upper end").
 * '*where', unless NULL, then says where.  If it is in the constraint, errno is ENOENT for an
 * unknown name, EDOM for an unknown choice, or else EINVAL.
 */
const char *searcher_check (const struct search_config *config, const struct param *params,
                            size_t n, struct search_mistake *where);

struct searcher;

/* Create a searcher over 'n' parameters.
 *
 * 'config' and 'params' are copied, but not the strings in them: these must stay
 * valid.  The state is one flat block of searcher_size() bytes without pointers
 * into itself.
 *
 * Returns NULL on failure with errno set: EINVAL (see searcher_check()), ENOMEM.
 */
struct searcher *searcher_create (const struct search_config *config, const struct param *params,
                                  size_t n);
void searcher_destroy (struct searcher *s);

/* Return an independent copy, or NULL with errno ENOMEM. */
struct searcher *searcher_copy (const struct searcher *s);

/* Size of the state in bytes; two searchers with equal bytes are equal. */
size_t searcher_size (const struct searcher *s);

/* ---- ask and observe ---- */

enum search_answer {
    SEARCH_RUN,  /* train the trial of 'struct search_op' */
    SEARCH_WAIT, /* nothing to do until a running segment ends */
    SEARCH_DONE, /* the search is complete */
};

struct search_op {
    long trial;          /* 1, 2, ... in the order of creation */
    bool fresh;          /* the trial is new and has the point 'x' */
    int64_t length;      /* train it to this total length */
    long from;           /* pbt: start from this trial's checkpoint ... */
    int64_t from_length; /* ... of this length; from 0: from scratch */
};

/* Ask what to do next; changes nothing.  SEARCH_RUN fills in 'op' and, for a
 * fresh trial, writes its point to x[0 .. n-1].
 */
enum search_answer searcher_ask (const struct searcher *s, struct search_op *op, double *x);

/* The events.  Each returns 0, or -1 with errno EINVAL and without a change if it
 * does not fit the state (an unknown trial, a result for a segment that is not
 * running).  Replaying a duplicate is therefore harmless.
 */

/* A segment has begun; 'x' is the point from searcher_ask() (ignored if !fresh). */
int searcher_begin (struct searcher *s, const struct search_op *op, const double *x);

/* The segment that ends at 'length' has produced the value of the metric, or of
 * each objective.  A value that is not finite makes a bad trial: it is never
 * promoted, and the search continues.
 */
int searcher_observe (struct searcher *s, long trial, int64_t length, const double *values);

/* The trial has failed for good, without a result: a bad trial. */
int searcher_exit (struct searcher *s, long trial);

/* The trainer has rejected the point as invalid: a bad trial that does not count.
 * Another trial replaces it, up to max_trials times.
 */
int searcher_reject (struct searcher *s, long trial);

/* A trial that searcher_exit() ended is being trained again, to the length at
 * which it failed: it can be observed, or exit, as before.  EINVAL for any other
 * trial, or if another repeat of its point was rejected.
 *
 * Its bad value is forgotten.  Decisions made in the meantime stand: a clone that
 * took its place in a population continues, too, and a model observes the trial
 * once more.
 */
int searcher_revive (struct searcher *s, long trial);

/* A running trial continues at another point 'x', to which later observations
 * belong.  EINVAL if the trial is not running, if 'x' is not a point of the space or
 * not allowed, and with repeats.
 */
int searcher_move (struct searcher *s, long trial, const double *x);

/* Returns the greatest value of a numeric parameter that is at most x / 2, NaN if
 * there is none.
 */
double searcher_half (const struct param *param, double x);

/* Report the metric at 'length' of a running segment, in increasing lengths.
 * Methods that stop trials early (HAS_REPORTS) use it; others ignore it.
 */
int searcher_report (struct searcher *s, long trial, int64_t length, double value);

/* Whether a running trial should stop now.  It is then observed at the length it
 * has reached.
 */
bool searcher_stops (const struct searcher *s, long trial);

/* The last segment of the trial took 'seconds', not multiplied by its number of
 * GPUs.  Used by max_seconds and cost_aware.
 */
int searcher_spend (struct searcher *s, long trial, double seconds);

/* Continue a search, complete or not, with other limits; 0 leaves a limit
 * unchanged.  All observations stay, and running segments end where they were to
 * end.  '*s' is replaced on success and unchanged on failure.
 *
 * max_trials: less than the existing number of trials means that no new trial
 * begins.  Searchers without max_trials (single, grid, pbt) ignore it.  hyperband
 * and its variants continue with their next brackets, halving adds a bracket of
 * the new trials, lhs a hypercube of those that have not begun; others just run
 * more trials.
 *
 * max_length: must not be less than before.  Existing rungs stay, whatever
 * max_rungs was, and new ones are added above, each 'divisor' times as long as
 * the one below, the last at max_length.  The best trials of the former top rung
 * are promoted as from any other; in pbt, generation by generation.  If trials
 * are trained in full, each one with a good value continues before new ones
 * begin, and its value becomes the one at the new length.
 *
 * max_seconds: of the whole search.
 *
 * Returns 0, or -1 with errno EINVAL (a limit that searcher_check() would reject;
 * a shorter max_length; more than 32 rungs or changes of the length; more than
 * 1000 brackets) or ENOMEM.
 */
int searcher_extend (struct searcher **s, long max_trials, int64_t max_length, double max_seconds);

/* Whether config->max_seconds are spent, so that no more segments begin. */
bool searcher_is_spent (const struct searcher *s);

/* Completed part of the work, 0 to 1.  Decreases only when searcher_revive() or
 * searcher_extend() add work.
 */
double searcher_progress (const struct searcher *s);

/* ---- looking ahead ---- */

struct search_rung {
    int64_t length;
    long trials; /* expected to end at this length */
};

/* Compute what a search will cost if every segment succeeds and each rung
 * promotes its share: writes at most 'max' rungs, shortest first.
 *
 * Returns the number of rungs, or -1 with errno EINVAL.
 */
int searcher_preview (const struct search_config *config, const struct param *params, size_t n,
                      struct search_rung *rungs, size_t max);

/* Random seed for the training of 'trial', 0 .. 2^31-1, the same for each attempt. */
uint32_t searcher_trial_seed (uint64_t seed, long trial);
