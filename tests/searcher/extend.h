/* SPDX-License-Identifier: Apache-2.0 */
/* Drive a search whose limits change, and check each step. */
#pragma once

#include "tests/searcher/params.h"
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

enum { MAX = 4000, DIMS = 2 };

static const struct param space[DIMS] = { FLOAT ("x", 0, 1, 4), INT ("y", 0, 2, 0) };

struct job {
    bool open, failed, stopped, bad;
    int64_t length, goal; /* trained length; end of the current segment */
    double x[DIMS];
};

/* A search, and a twin that applies the same events but is never replaced by a copy. */
struct run {
    const struct searcher_kind *kind;
    struct search_config config;
    struct searcher *s, *twin;
    struct job job[MAX];
    long trials, open, workers;
    long rejected;
    uint64_t random;
    int fails, rejects; /* percent */
};

static inline double metric (const struct job *j, int64_t length)
{
    return (j->x[0] - 0.3) * (j->x[0] - 0.3) + j->x[1] * 0.1 + 1.0 / (double)length;
}

static inline struct run *run_open (const struct searcher_kind *k, const struct search_config *more)
{
    struct run *r = calloc (1, sizeof (*r));

    assert_non_null (r);
    r->kind = k;
    r->random = 1;
    r->workers = 3;
    r->config = (struct search_config)SEARCH (
        k->name, .seed = 5, LADDER (12, 9, 3, 5),
        .mode = more && more->mode ? more->mode : SEARCH_STANDARD,
        .population = !strcmp (k->name, "pbt") ? 4 : 0,
        .min_length = !strcmp (k->name, "pbt") ? 3 : 0, .repeats = more ? more->repeats : 0,
        .objectives = more ? more->objectives : 0, .cost_aware = more ? more->cost_aware : false,
        .max_seconds = more ? more->max_seconds : 0);
    if (more && more->max_length)
        r->config.max_length = more->max_length;
    if (more && more->max_trials)
        r->config.max_trials = more->max_trials;
    r->s = searcher_create (&r->config, space, DIMS);
    r->twin = searcher_create (&r->config, space, DIMS);
    assert_non_null (r->s);
    assert_non_null (r->twin);
    return r;
}

static inline void run_close (struct run *r)
{
    searcher_destroy (r->s);
    searcher_destroy (r->twin);
    free (r);
}

/* Continue with a copy and poison the old state, to find pointers into it. */
static inline void swap (struct run *r)
{
    struct searcher *copy = searcher_copy (r->s);

    assert_non_null (copy);
    assert_true (same_bytes (r->s, r->twin));
    memset (r->s, 0xa5, searcher_size (copy));
    searcher_destroy (r->s);
    r->s = copy;
}

static inline bool chance (struct run *r, int hundredth)
{
    return (int)sweep_random (&r->random, 100) < hundredth;
}

static inline enum search_answer begin (struct run *r)
{
    struct search_op op;
    double x[DIMS];
    enum search_answer answer = searcher_ask (r->s, &op, x);
    struct job *j;

    assert_true (same_bytes (r->s, r->twin));
    if (answer != SEARCH_RUN) {
        assert_int_equal (answer, r->open ? SEARCH_WAIT : SEARCH_DONE);
        return answer;
    }
    assert_true (searcher_progress (r->s) < 1);
    assert_true (op.trial < MAX);
    j = r->job + op.trial;
    assert_int_equal (op.fresh, op.trial == r->trials + 1);
    assert_false (j->open);
    assert_true (op.length > j->length && op.length > op.from_length);
    if (op.fresh) {
        r->trials++;
        memcpy (j->x, x, sizeof (x));
    }
    j->open = true;
    j->goal = op.length;
    r->open++;
    assert_int_equal (searcher_begin (r->s, &op, x), 0);
    assert_int_equal (searcher_begin (r->twin, &op, x), 0);
    swap (r);
    return answer;
}

#define BOTH(call, ...)                                                                            \
    do {                                                                                           \
        assert_int_equal (call (r->s, __VA_ARGS__), 0);                                            \
        assert_int_equal (call (r->twin, __VA_ARGS__), 0);                                         \
        swap (r);                                                                                  \
    } while (0)

static inline void report (struct run *r, long trial)
{
    struct job *j = r->job + trial;
    int64_t length = j->length + 1;

    for (; length < j->goal && !searcher_stops (r->s, trial); length += 2)
        BOTH (searcher_report, trial, length, metric (j, length));
    if (searcher_stops (r->s, trial)) {
        j->goal = length > j->goal ? j->goal : length;
        j->stopped = true;
    }
}

static inline void tell (struct run *r, long trial)
{
    struct job *j = r->job + trial;
    double value = metric (j, j->goal);
    double values[2] = { value, -j->x[0] };

    if (r->config.objectives > 1)
        BOTH (searcher_observe, trial, j->goal, values);
    else
        BOTH (searcher_observe, trial, j->goal, &value);
    j->length = j->goal;
}

static inline void end (struct run *r, long trial)
{
    struct job *j = r->job + trial;

    if (chance (r, r->fails)) {
        BOTH (searcher_exit, trial);
        j->failed = true;
    } else if (chance (r, r->rejects)) {
        BOTH (searcher_reject, trial);
        j->bad = true;
    } else {
        if (r->kind->needs & HAS_REPORTS)
            report (r, trial);
        tell (r, trial);
    }
    BOTH (searcher_spend, trial, 1);
    j->open = false;
    r->open--;
}

static inline void end_any (struct run *r)
{
    long pick = sweep_random (&r->random, r->open), i = 1;

    for (;; i++)
        if (r->job[i].open && pick-- == 0)
            break;
    end (r, i);
}

/* Run up to 'events' events; return true if the search is done. */
static inline bool advance (struct run *r, long events)
{
    while (events-- > 0)
        if (r->open >= r->workers || begin (r) != SEARCH_RUN) {
            if (r->open == 0)
                return true;
            end_any (r);
        }
    return false;
}

static inline void finish (struct run *r)
{
    assert_true (advance (r, 100000));
    assert_true (searcher_progress (r->s) == 1);
    assert_int_equal (searcher_ask (r->s, &(struct search_op){ 0 }, (double[DIMS]){ 0 }),
                      SEARCH_DONE);
}

static inline void extend (struct run *r, long trials, int64_t length)
{
    assert_int_equal (searcher_extend (&r->s, trials, length, 0), 0);
    assert_int_equal (searcher_extend (&r->twin, trials, length, 0), 0);
    swap (r);
}

static inline void revive (struct run *r, long trial)
{
    struct job *j = r->job + trial;

    BOTH (searcher_revive, trial);
    assert_true (searcher_progress (r->s) < 1);
    j->open = true;
    j->failed = false;
    r->open++;
}

static inline long count_at (const struct run *r, int64_t length)
{
    long n = 0;

    for (long i = 1; i <= r->trials; i++)
        n += r->job[i].length == length;
    return n;
}

static inline long count_above (const struct run *r, int64_t length)
{
    long n = 0;

    for (long i = 1; i <= r->trials; i++)
        n += r->job[i].length > length;
    return n;
}

static inline bool takes_trials (const struct searcher_kind *k)
{
    return k->needs & (NEED_MAX_TRIALS | CAN_MAX_TRIALS);
}

static inline bool is_slow (const struct searcher_kind *k)
{
    return !strcmp (k->name, "gp") || !strcmp (k->name, "auto");
}

static inline const struct searcher_kind *kind (const char *name)
{
    const struct searcher_kind *k = searcher_kinds;

    while (strcmp (k->name, name))
        k++;
    return k;
}
