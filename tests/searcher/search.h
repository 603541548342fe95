/* SPDX-License-Identifier: Apache-2.0 */
/* Drive a searcher that trains every trial in full. */
#pragma once

#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static inline struct searcher *search_create (const char *name, uint64_t seed, long trials,
                                              const struct param *p, size_t n)
{
    const struct search_config config =
        SEARCH (name, .seed = seed, .max_trials = trials, .max_length = 1);
    struct searcher *s = searcher_create (&config, p, n);

    assert_non_null (s);
    return s;
}

/* Begin the next trial at x and return its number. */
static inline long search_begin (struct searcher *s, double *x)
{
    return sweep_next (s, x).trial;
}

/* Return the best metric() that a search finds.  The search observes told() instead; INFINITY
 * means that the trial ends without a value.
 */
static inline double search_best (const char *name, uint64_t seed, long trials,
                                  const struct param *p, size_t n,
                                  double (*metric) (const double *x),
                                  double (*told) (const double *x, long trial))
{
    struct searcher *s = search_create (name, seed, trials, p, n);
    double best = INFINITY;
    double x[8];

    for (long i = 0; i < trials; i++) {
        long t = search_begin (s, x);
        double value = told (x, t);
        if (isinf (value))
            searcher_exit (s, t);
        else
            searcher_observe (s, t, 1, &value);
        best = metric (x) < best ? metric (x) : best;
    }
    searcher_destroy (s);
    return best;
}

/* Maximizing the negated metric proposes the same points. */
static inline void search_mirrors (const char *name, long trials, const struct param *p, size_t n,
                                   double (*metric) (const double *x))
{
    struct search_config config = {
        .name = name, .seed = 3, .max_trials = trials, .max_length = 1
    };
    struct searcher *up = searcher_create (&config, p, n);
    struct searcher *down = search_create (name, 3, trials, p, n);
    double x[8];
    double y[8];

    for (long i = 0; i < trials; i++) {
        long t = search_begin (up, x);
        assert_int_equal (search_begin (down, y), t);
        assert_memory_equal (x, y, n * sizeof (*x));
        searcher_observe (up, t, 1, &(double){ -metric (x) });
        searcher_observe (down, t, 1, &(double){ metric (x) });
    }
    searcher_destroy (up);
    searcher_destroy (down);
}

/* A copy of the searcher proposes the same points, bit for bit. */
static inline void search_copies (const char *name, long trials, const struct param *p, size_t n,
                                  double (*metric) (const double *x))
{
    struct searcher *s = search_create (name, 9, trials, p, n);
    double x[8];
    double y[8];

    for (long i = 0; i < trials; i++) {
        struct searcher *copy = searcher_copy (s);
        long t = search_begin (s, x);
        assert_int_equal (search_begin (copy, y), t);
        assert_memory_equal (x, y, n * sizeof (*x));
        assert_memory_equal (s, copy, searcher_size (s));
        searcher_observe (s, t, 1, &(double){ metric (x) });
        searcher_destroy (copy);
    }
    searcher_destroy (s);
}
