/* SPDX-License-Identifier: Apache-2.0 */
/* The ask/observe interface: parameters, strings, duplicates, races.  events.c tests replay and
 * copies.
 */
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

/* A space with every type, and with names in two levels. */
static const struct param space[] = {
    { "optimizer.lr", PARAM_LOG, -5, -1, 10, 0, 3 },
    { "optimizer.momentum", PARAM_FLOAT, 0.5, 1, 0, 0, 2 },
    { "model.layers", PARAM_INT, 1, 4, 0, 0, 0 },
    { "model.kind", PARAM_CATEGORICAL, 0, 0, 0, 3, 0 },
    { "data", PARAM_CATEGORICAL, 0, 0, 0, 1, 0 },
};

static double quality (const struct sweep *w, long trial, int64_t length)
{
    const double *x = w->x[trial];

    if (x[2] == 4 && x[3] == 2)
        return NAN;
    return fabs (log10 (x[0]) + 3) + x[1] / x[2] + 1.0 / length;
}

static struct sweep start (const char *kind, uint64_t seed)
{
    static const double divisors[] = { 2, 3, 2.5, 4 };
    struct sweep w = { .config = { .name = kind,
                                   .seed = seed,
                                   LADDER (30, 81, divisors[seed % 4], 4),
                                   .smaller_is_better = seed % 2,
                                   .mode = seed % 3,
                                   .max_concurrent = 6 },
                       .params = space,
                       .n = COUNT (space),
                       .metric = quality,
                       .workers = 5,
                       .shuffle = seed };

    return w;
}

/* Run methods with slow models less often. */
static uint64_t runs (const struct searcher_kind *k, uint64_t n)
{
    bool slow = !strcmp (k->name, "gp") || !strcmp (k->name, "auto");

    return slow ? n / 10 + 1 : n;
}

/* Adding, removing or moving a parameter does not change the values of the others. */
CASE (test_order_of_params)
{
    const struct param moved[] = { space[3], space[1], space[0] };
    struct sweep a = start ("random", 3), b = start ("random", 3);

    sweep_run (&a);
    b.params = moved;
    b.n = COUNT (moved);
    b.s = searcher_create (&b.config, b.params, b.n);
    for (long t = 1; t <= 5; t++) {
        double x[3];
        sweep_next (b.s, x);
        assert_true (x[0] == a.x[t][3]);
        assert_true (x[1] == a.x[t][1]);
        assert_true (x[2] == a.x[t][0]);
    }
    sweep_free (&a);
    sweep_free (&b);
}

/* The searcher keeps no pointer to the caller's strings. */
CASE (test_strings_are_not_kept)
{
    char kind[] = "asha", name[] = "lr";
    struct param p = { name, PARAM_FLOAT, 0, 1, 0, 0, 0 };
    struct search_config config = start ("asha", 1).config;
    struct searcher *a, *b;

    p.name = "lr";
    a = searcher_create (&config, &p, 1);
    p.name = name;
    config.name = kind;
    b = searcher_create (&config, &p, 1);
    memset (kind, 'x', sizeof (kind));
    memset (name, 'x', sizeof (name));
    assert_non_null (a);
    assert_non_null (b);
    assert_true (same_bytes (a, b));
    searcher_destroy (a);
    searcher_destroy (b);
    errno = ERANGE;
    searcher_destroy (NULL);
    assert_int_equal (errno, ERANGE);
}

static void refused (const struct searcher *s, const struct event *e)
{
    struct searcher *copy = searcher_copy (s);
    int rc = 0;

    errno = 0;
    switch (e->what) {
    case EVENT_BEGIN:
        rc = searcher_begin (copy, &e->op, e->x);
        break;
    case EVENT_TELL:
        rc = searcher_observe (copy, e->op.trial, e->op.length, &(double){ e->value });
        break;
    case EVENT_EXIT:
        rc = searcher_exit (copy, e->op.trial);
        break;
    case EVENT_REJECT:
    case EVENT_REPORT:
    case EVENT_SPEND:
        break;
    }
    assert_int_equal (rc, -1);
    assert_int_equal (errno, EINVAL);
    assert_true (same_bytes (copy, s));
    searcher_destroy (copy);
}

/* After each event, the searcher rejects every earlier event as a duplicate.  Exits are left out,
 * because an exit names no segment.  Asking changes nothing.
 */
static bool all_duplicates (struct sweep *w)
{
    struct searcher *copy = searcher_copy (w->s);
    struct search_op op;
    double x[8];

    for (size_t i = 0; i < w->n_events; i++)
        if (w->events[i].what != EVENT_EXIT)
            refused (w->s, w->events + i);
    (void)searcher_ask (w->s, &op, x);
    assert_true (same_bytes (copy, w->s));
    searcher_destroy (copy);
    return true;
}

CASE (test_duplicates)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (uint64_t seed = 1; seed <= runs (k, 4); seed++) {
            struct sweep w = start (k->name, seed);

            w.config.max_trials = 12;
            w.more = all_duplicates;
            sweep_run (&w);
            sweep_free (&w);
        }
}

/* Events that are invalid once trial 1 has begun. */
static const struct event misfits[] = {
    { EVENT_BEGIN, { 0, true, 1 }, 0, { 0, 0, 0, 1 } },
    { EVENT_BEGIN, { 1, true, 1 }, 0, { 0, 0, 0, 1 } },
    { EVENT_BEGIN, { 3, true, 1 }, 0, { 0, 0, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 3 }, 0, { 0, 0, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 0 }, 0, { 0, 0, 0, 1 } },
    { EVENT_BEGIN, { 2, true, -1 }, 0, { 0, 0, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 6, 0, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0.5, 0, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, 2, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, -1, 0, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, 0, 1.5, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, 0, NAN, 1 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, 0, 0, 0 } },
    { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, 0, 0, INFINITY } },
    { EVENT_BEGIN, { 1, false, 3 }, 0, { 0 } },
    { EVENT_BEGIN, { 2, false, 1 }, 0, { 0 } },
    { EVENT_BEGIN, { -1, false, 1 }, 0, { 0 } },
    { EVENT_BEGIN, { 99, false, 1 }, 0, { 0 } },
    { EVENT_TELL, { 1, false, 3 }, 0, { 0 } },
    { EVENT_TELL, { 2, false, 1 }, 0, { 0 } },
    { EVENT_TELL, { 0, false, 1 }, 0, { 0 } },
    { EVENT_TELL, { -1, false, 1 }, 0, { 0 } },
    { EVENT_TELL, { 99, false, 1 }, 0, { 0 } },
    { EVENT_EXIT, { 2, false, 0 }, 0, { 0 } },
    { EVENT_EXIT, { 0, false, 0 }, 0, { 0 } },
    { EVENT_EXIT, { 99, false, 0 }, 0, { 0 } },
};

CASE (test_nonsense)
{
    const struct param p[] = { { "i", PARAM_INT, 0, 5, 0, 0, 0 },
                               { "c", PARAM_CATEGORICAL, 0, 0, 0, 2, 0 },
                               { "f", PARAM_FLOAT, 0, 1, 0, 0, 0 },
                               { "l", PARAM_LOG, -3, 0, 10, 0, 0 } };
    const struct search_config config = {
        .name = "asha", .max_trials = 9, .max_length = 9, .divisor = 3, .max_rungs = 3
    };
    const struct event first = { EVENT_BEGIN, { 1, true, 1 }, 0, { 5, 1, 1, 0.5 } };
    const struct event second = { EVENT_BEGIN, { 2, true, 1 }, 0, { 0, 0, 0, 1 } };
    struct searcher *s = searcher_create (&config, p, COUNT (p));

    assert_non_null (s);
    sweep_apply (s, &first);
    for (size_t i = 0; i < COUNT (misfits); i++)
        refused (s, misfits + i);
    assert_int_equal (searcher_begin (s, &second.op, NULL), -1);
    sweep_apply (s, &second); /* the valid event that all misfits differ from */
    assert_int_equal (searcher_exit (s, 2), 0);
    refused (s, &(struct event){ .what = EVENT_EXIT, .op = { 2, false, 1 } });
    refused (s, &(struct event){ .what = EVENT_TELL, .op = { 2, false, 1 } });
    searcher_destroy (s);
}

/* Two workers ask, and one writes the next log entry; the other has to apply it and ask again. */
CASE (test_race)
{
    struct sweep w = start ("asha", 1);
    struct searcher *a = searcher_create (&w.config, w.params, w.n);
    struct searcher *b = searcher_create (&w.config, w.params, w.n);
    struct search_op mine, yours;
    double x[8] = { 0 }, y[8] = { 0 };

    for (int i = 0; i < 6; i++) {
        assert_int_equal (searcher_ask (a, &mine, x), SEARCH_RUN);
        assert_int_equal (searcher_ask (b, &yours, y), SEARCH_RUN);
        assert_int_equal (mine.trial, yours.trial);
        assert_memory_equal (x, y, sizeof (x));
        assert_int_equal (searcher_begin (a, &mine, x), 0);
        assert_int_equal (searcher_begin (b, &mine, x), 0);
        assert_int_equal (searcher_begin (b, &yours, y), -1);
        assert_int_equal (errno, EINVAL);
        assert_true (same_bytes (a, b));
    }
    assert_int_equal (searcher_ask (a, &mine, x), SEARCH_WAIT);
    searcher_destroy (a);
    searcher_destroy (b);
}

/* Accept promotions in any order, because another version may have written the log. */
CASE (test_begin_out_of_order)
{
    const struct search_config config = SEARCH ("asha", LADDER (40, 4, 2, 2), .max_concurrent = 40);
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op op;
    long order[] = { 7, 1, 4, 10, 2, 3, 5, 6, 8, 9 };

    assert_non_null (s);
    for (long t = 1; t <= 20; t++)
        sweep_next (s, NULL);
    for (long t = 1; t <= 20; t++)
        assert_int_equal (searcher_observe (s, t, 2, &(double){ t }), 0);
    for (size_t i = 0; i < COUNT (order); i++) {
        op = (struct search_op){ order[i], false, 4 };
        assert_int_equal (searcher_begin (s, &op, NULL), 0);
        assert_int_equal (searcher_begin (s, &op, NULL), -1);
        assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
        if (i < 2)
            assert_int_equal (op.trial, i == 0 ? 1 : 2);
    }
    assert_true (op.fresh);
    searcher_destroy (s);
}

CASE (test_trial_seed)
{
    for (uint64_t seed = 0; seed < 20; seed++)
        for (long t = 1; t <= 20; t++) {
            uint32_t one = searcher_trial_seed (seed, t);
            assert_true (one <= INT32_MAX);
            assert_int_equal (one, searcher_trial_seed (seed, t));
            assert_int_not_equal (one, searcher_trial_seed (seed, t + 1));
            assert_int_not_equal (one, searcher_trial_seed (seed + 1, t));
        }
}

RUN_CASES ()
