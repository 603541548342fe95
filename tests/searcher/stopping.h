/* SPDX-License-Identifier: Apache-2.0 */
/* Searches whose trials report and may be stopped: whole sweeps, and single steps. */
#pragma once

#include "tests/searcher/sweep.h"
#include "tests/unit.h"

enum { TRIALS = 200, LENGTH = 64 };

/* Few distinct values, so that many tie; some are not finite. */
static inline double noisy (const struct sweep *w, long trial, int64_t length)
{
    uint64_t value = sweep_noise (w, trial, length, 200);

    return value == 0 ? NAN : trial % 5 + 0.25 * (double)(value % 32);
}

static inline struct sweep start (const char *name, uint64_t seed)
{
    uint64_t r = seed;
    struct sweep w = { .config = SEARCH (
                           name, .seed = seed, .max_trials = 1 + sweep_random (&r, 120),
                           .max_length = 1 + sweep_random (&r, LENGTH),
                           .divisor = seed % 2 ? 3 : 2.5, .max_rungs = 1 + sweep_random (&r, 5),
                           .min_length = sweep_random (&r, 6)),
                       .metric = noisy,
                       .fails = seed % 3 ? NULL : sweep_seldom,
                       .report = 1 + sweep_random (&r, 4),
                       .workers = sweep_random (&r, 12),
                       .shuffle = seed };

    return w;
}

static inline struct searcher *create (const char *name, int64_t min_length)
{
    const struct search_config config =
        SEARCH (name, LADDER (20, 9, 3, 3), .min_length = min_length);
    struct searcher *s = searcher_create (&config, NULL, 0);

    assert_non_null (s);
    return s;
}

static inline long begin (struct searcher *s)
{
    struct search_op op;

    assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
    assert_int_equal (op.length, 9);
    assert_int_equal (searcher_begin (s, &op, NULL), 0);
    return op.trial;
}

static inline bool report (struct searcher *s, long trial, int64_t length, double y)
{
    assert_int_equal (searcher_report (s, trial, length, y), 0);
    return searcher_stops (s, trial);
}
