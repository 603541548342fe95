/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the time of one decision after n finished trials:
 *
 *     make tests/bench/decision && tests/bench/decision
 *
 * There are 8 parameters as in the figures of other tools: 5 floats (2 of them log), 2 integers,
 * 1 choice of 4.  Prints the median CPU time of ask, begin and observe together, and the CPU time
 * of replaying all trials before.
 */
#include "searcher/searcher.h"
#include "tests/bench/bench.h"

enum { PARAMS = 8, DECISIONS = 15 };

static const struct param params[PARAMS] = {
    { .name = "a", .type = PARAM_FLOAT, .min = 0, .max = 1 },
    { .name = "b", .type = PARAM_FLOAT, .min = -5, .max = 5 },
    { .name = "c", .type = PARAM_FLOAT, .min = 0, .max = 100 },
    { .name = "d", .type = PARAM_LOG, .base = 10, .min = -5, .max = 0 },
    { .name = "e", .type = PARAM_LOG, .base = 10, .min = -3, .max = 3 },
    { .name = "f", .type = PARAM_INT, .min = 1, .max = 64 },
    { .name = "g", .type = PARAM_INT, .min = 0, .max = 9 },
    { .name = "h", .type = PARAM_CATEGORICAL, .choices = 4 },
};

static double value (const double *x)
{
    return x[0] + x[1] * x[1] / 25 + x[5] / 64 + (x[7] != 2);
}

static struct searcher *create (const char *name, long trials)
{
    const struct search_config config = {
        .name = name, .seed = 1, .max_trials = trials, .max_length = 1, .smaller_is_better = true
    };
    struct searcher *s = searcher_create (&config, params, PARAMS);

    return s ? s : (abort (), NULL);
}

/* Returns a searcher after n trials at random points, and in 'seconds' how long it took to record
 * them, without drawing the points.
 */
static struct searcher *after (const char *name, long n, double *seconds)
{
    struct searcher *s = create (name, n + DECISIONS);
    struct searcher *random = create ("random", n + DECISIONS);
    struct search_op op;
    double x[PARAMS];

    *seconds = 0;
    for (long i = 0; i < n; i++) {
        double start;
        if (searcher_ask (random, &op, x) != SEARCH_RUN || searcher_begin (random, &op, x))
            abort ();
        start = seconds_of (CLOCK_PROCESS_CPUTIME_ID);
        if (searcher_begin (s, &op, x) || searcher_observe (s, op.trial, 1, &(double){ value (x) }))
            abort ();
        *seconds += seconds_of (CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    searcher_destroy (random);
    return s;
}

static void measure (const char *name, long n)
{
    double times[DECISIONS], replay;
    struct searcher *s = after (name, n, &replay);
    struct search_op op;
    double x[PARAMS];

    for (int i = 0; i < DECISIONS; i++) {
        double start = seconds_of (CLOCK_PROCESS_CPUTIME_ID);
        if (searcher_ask (s, &op, x) != SEARCH_RUN || searcher_begin (s, &op, x)
            || searcher_observe (s, op.trial, 1, &(double){ value (x) }))
            abort ();
        times[i] = seconds_of (CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    printf ("%-8s %6ld trials %10.4f ms; replay of all %8.2f ms\n", name, n,
            median (times, DECISIONS) * 1e3, replay * 1e3);
    searcher_destroy (s);
}

/* Whether the searcher, with the settings above, trains each trial to full length. */
static bool is_full (const struct searcher_kind *k)
{
    return k->needs & NEED_MAX_TRIALS && !(k->needs & (HAS_REPORTS | IS_CUSTOM))
           && (!(k->needs & HAS_RUNGS) || !strcmp (k->name, "auto"));
}

int main (void)
{
    static const long trials[] = { 100, 1000, 10000 };

    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (size_t i = 0; i < sizeof (trials) / sizeof (*trials); i++)
            if (is_full (k))
                measure (k->name, trials[i]);
    return 0;
}
