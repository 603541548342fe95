/* SPDX-License-Identifier: Apache-2.0 */
/* Measure the time of a decision: make tests/bench/searcher && tests/bench/searcher */
#include "searcher/searcher.h"
#include "tests/bench/bench.h"

enum { PARAMS = 8, WORKERS = 64 };

struct event {
    struct search_op op;
    double value; /* of a result; unused if 'begin' is set */
    bool begin;
    double x[PARAMS];
};

static double value (long trial)
{
    return searcher_trial_seed (7, trial);
}

/* Run a whole search.  Returns the number of events. */
static long live (struct searcher *s, struct event *log)
{
    struct search_op running[WORKERS];
    long n = 0, first = 0, last = 0;

    for (;;) {
        while (last - first < WORKERS && searcher_ask (s, &log[n].op, log[n].x) == SEARCH_RUN) {
            log[n].begin = true;
            if (searcher_begin (s, &log[n].op, log[n].x))
                abort ();
            running[last++ % WORKERS] = log[n++].op;
        }
        if (first == last)
            return n;
        log[n].op = running[first++ % WORKERS];
        log[n].begin = false;
        log[n].value = value (log[n].op.trial);
        if (searcher_observe (s, log[n].op.trial, log[n].op.length, &log[n].value))
            abort ();
        n++;
    }
}

static void replay (struct searcher *s, const struct event *log, long n)
{
    for (long i = 0; i < n; i++)
        if (log[i].begin ? searcher_begin (s, &log[i].op, log[i].x)
                         : searcher_observe (s, log[i].op.trial, log[i].op.length, &log[i].value))
            abort ();
}

/* Print the average cost of a segment over a whole search with 64 segments in flight and values in
 * random order: first searcher_ask(), _begin() and _observe() together, then _begin() and
 * _observe() alone, as when a log is replayed.
 */
static void measure (const char *name, long trials)
{
    struct param params[PARAMS];
    const struct search_config config = { .name = name,
                                          .max_trials = trials,
                                          .max_length = 1000,
                                          .smaller_is_better = true,
                                          .divisor = 4,
                                          .max_rungs = 5,
                                          .mode = SEARCH_STANDARD,
                                          .max_concurrent = WORKERS };
    static const char *const names[PARAMS] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    struct event *log = calloc (8 * trials, sizeof (*log));
    struct searcher *s, *again;
    double start, asked, replayed;
    long n;

    for (int i = 0; i < PARAMS; i++)
        params[i] = (struct param){ names[i], i % 2 ? PARAM_FLOAT : PARAM_INT, 0, 9, 0, 0, 1 };
    params[0].max = trials - 1;
    params[0].count = 0;
    s = searcher_create (&config, params, PARAMS);
    again = searcher_create (&config, params, PARAMS);
    if (!s || !again || !log)
        abort ();
    start = now ();
    n = live (s, log);
    asked = now ();
    replay (again, log, n);
    replayed = now ();
    printf ("%-14s %7ld trials %7ld segments %7.2f us live %7.2f us replay "
            "%9zu bytes\n",
            name, trials, n / 2, 1e6 * (asked - start) / (n / 2),
            1e6 * (replayed - asked) / (n / 2), searcher_size (s));
    searcher_destroy (s);
    searcher_destroy (again);
    free (log);
}

/* These searchers take longer with each trial; decision.c measures them. */
static bool has_model (const char *name)
{
    static const char *const models[] = { "auto", "tpe", "gp", "nsga2", "bohb" };

    for (size_t i = 0; i < sizeof (models) / sizeof (*models); i++)
        if (!strcmp (models[i], name))
            return true;
    return false;
}

int main (void)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (long trials = 100; trials <= 100000; trials *= 10)
            if (k->needs & (NEED_MAX_TRIALS | NEED_GRID_COUNT) && !has_model (k->name))
                measure (k->name, trials);
    return 0;
}
