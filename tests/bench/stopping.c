/* SPDX-License-Identifier: Apache-2.0 */
/* Compare what early stopping saves with how often it loses the best trial:
 *
 *     make tests/bench/stopping && tests/bench/stopping [SEEDS]
 *
 * Each seed is a search with 16 trials at a time.  Their curves are noisy and fall towards their
 * final values; max (floor (n / 4), 1) trials pass a rung.  The clock is simulated: a step takes
 * one unit of time.  Prints means.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/searcher.h"

enum { TRIALS = 64, LENGTH = 256, WORKERS = 16, SEEDS = 300 };

/* Work and time are in units of a full training.  WHOLE: number of trials trained to the end. BEST:
 * whether the best trial was among them (0 or 1).
 */
enum { WORK, WHOLE, BEST, TIME, MEASURES };

/* For each trial: its current step, and the last step of its segment. */
static int64_t at[2 * TRIALS + 1], goal[2 * TRIALS + 1];

static double uniform (uint64_t seed, long trial, uint64_t n)
{
    return (double)(searcher_trial_seed (seed * 1009 + n, trial) % 1000003) / 1000003;
}

static double normal (uint64_t seed, long trial, uint64_t n)
{
    return sqrt (-2 * log (1e-6 + uniform (seed, trial, 2 * n + 7)))
           * cos (6.283185307179586 * uniform (seed, trial, 2 * n + 8));
}

/* Curves cross: trials that improve fast at first are not always best in the end. */
static double curve (uint64_t seed, long trial, int64_t step)
{
    double end = uniform (seed, trial, 1), rate = uniform (seed, trial, 2);

    return end + pow ((double)step, -0.3 - 0.5 * rate)
           + 0.05 / sqrt ((double)step) * normal (seed, trial, (uint64_t)step);
}

static long best_of (uint64_t seed)
{
    long best = 1;

    for (long t = 2; t <= TRIALS; t++)
        if (curve (seed, t, LENGTH) < curve (seed, best, LENGTH))
            best = t;
    return best;
}

/* Give trials to idle workers.  Returns the number of running trials. */
static long begin (struct searcher *s, long *running, long n)
{
    struct search_op op;

    while (n < WORKERS && searcher_ask (s, &op, NULL) == SEARCH_RUN
           && searcher_begin (s, &op, NULL) == 0) {
        running[n++] = op.trial;
        goal[op.trial] = op.length;
    }
    return n;
}

/* Train each running trial for one step, and remove those that end or are stopped.  Returns how
 * many remain.
 */
static long step (struct searcher *s, uint64_t seed, long *running, long n, double *found)
{
    long left = 0;

    for (long i = 0; i < n; i++) {
        long t = running[i];
        double y = curve (seed, t, ++at[t]);
        bool end = at[t] == goal[t];
        found[WORK] += 1.0 / LENGTH;
        if (!end)
            searcher_report (s, t, at[t], y);
        if (!end && !searcher_stops (s, t)) {
            running[left++] = t;
            continue;
        }
        searcher_observe (s, t, at[t], &y);
        found[WHOLE] += at[t] == LENGTH;
        found[BEST] += at[t] == LENGTH && t == best_of (seed);
    }
    return left;
}

static void search (const char *name, uint64_t seed, double *found)
{
    const struct search_config config = { .name = name,
                                          .seed = seed,
                                          .max_trials = TRIALS,
                                          .max_length = LENGTH,
                                          .smaller_is_better = true,
                                          .divisor = 4,
                                          .max_rungs = 5,
                                          .mode = SEARCH_STANDARD,
                                          .max_concurrent = WORKERS };
    struct searcher *s = searcher_create (&config, NULL, 0);
    long running[WORKERS], n = 0;

    if (!s)
        exit (1);
    memset (at, 0, sizeof (at));
    while ((n = begin (s, running, n)) > 0) {
        n = step (s, seed, running, n, found);
        found[TIME] += 1.0 / LENGTH;
    }
    searcher_destroy (s);
}

int main (int argc, char **argv)
{
    static const struct {
        const char *what, *name;
    } rows[] = { { "stopping_asha", "stopping_asha" },
                 { "adaptive_stopping", "adaptive_stopping" },
                 { "asha, from checkpoints", "asha" },
                 { "all in full", "random" } };
    long seeds = argc > 1 ? strtol (argv[1], NULL, 10) : SEEDS;

    if (seeds < 1) {
        fprintf (stderr, "usage: stopping [SEEDS]\n");
        return 2;
    }
    printf ("%-26s %6s %6s %6s %6s\n", "", "work", "full", "best", "time");
    for (size_t i = 0; i < sizeof (rows) / sizeof (*rows); i++) {
        double found[MEASURES] = { 0 };
        for (long seed = 1; seed <= seeds; seed++)
            search (rows[i].name, (uint64_t)seed, found);
        printf ("%-26s %6.2f %6.2f %6.2f %6.2f\n", rows[i].what, found[WORK] / (double)seeds,
                found[WHOLE] / (double)seeds, found[BEST] / (double)seeds,
                found[TIME] / (double)seeds);
    }
    return 0;
}
