/* SPDX-License-Identifier: Apache-2.0 */
/* A snapshot of a sweep's searcher behaves like a full copy, for every searcher. */
#include "launcher/sweep/snapshot.h"
#include "searcher/searcher.h"
#include "tests/unit.h"

enum { RUNNING_MAX = 64, STEPS = 60, AHEAD = 4 };

static const struct param params[] = {
    { .name = "x", .type = PARAM_FLOAT, .min = 0, .max = 1, .count = 5 },
    { .name = "y", .type = PARAM_FLOAT, .min = -1, .max = 1, .count = 5 },
};

/* A searcher, and the operations that it has started. */
struct search {
    struct searcher *s;
    struct search_op running[RUNNING_MAX];
    unsigned n;
};

static unsigned long draw (void)
{
    static uint64_t state = 1;

    state = state * UINT64_C (6364136223846793005) + 1442695040888963407;
    return (unsigned long)(state >> 33);
}

static void begin (struct search *w)
{
    struct search_op op;
    double x[2] = { 0 };

    if (w->n < RUNNING_MAX && searcher_ask (w->s, &op, x) == SEARCH_RUN) {
        assert_int_equal (searcher_begin (w->s, &op, x), 0);
        w->running[w->n++] = op;
    }
}

static void end (struct search *w, unsigned long r)
{
    unsigned i = (unsigned)(r / 8) % w->n;
    const struct search_op *op = &w->running[i];
    double value = (double)(r % 997);

    searcher_spend (w->s, op->trial, value);
    if (r % 16 == 1)
        searcher_exit (w->s, op->trial);
    else if (r % 16 == 3)
        searcher_reject (w->s, op->trial);
    else
        searcher_observe (w->s, op->trial, op->length, &value);
    w->running[i] = w->running[--w->n];
}

static void act (struct search *w, unsigned long r)
{
    if (w->n == 0 || r % 2 == 0)
        begin (w);
    else
        end (w, r);
}

static void assert_same (const struct searcher *a, const struct searcher *b)
{
    assert_int_equal (searcher_size (a), searcher_size (b));
    assert_memory_equal (a, b, searcher_size (a));
}

/* Run ahead in a snapshot and in a copy.  They stay equal, and the sweep does not change. */
static void look_ahead (struct sweep *s, const struct search *now)
{
    struct searcher *before = searcher_copy (s->searcher);
    struct search snapshot = *now, copy = *now;

    snapshot.s = sweep_snapshot (s);
    copy.s = searcher_copy (s->searcher);
    assert_non_null (snapshot.s);
    assert_true (s->searcher_file > 0);
    for (int i = 0; i < AHEAD; i++) {
        unsigned long r = draw ();
        act (&snapshot, r);
        act (&copy, r);
        assert_same (snapshot.s, copy.s);
    }
    assert_same (s->searcher, before);
    sweep_end_snapshot (s, snapshot.s);
    searcher_destroy (copy.s);
    searcher_destroy (before);
}

static void search (const struct searcher_kind *k, long repeats)
{
    const struct search_config config = {
        .name = k->name,
        .seed = 7,
        .max_trials = 40,
        .max_length = k->needs & (HAS_RUNGS | HAS_REPORTS) ? 27 : 1,
        .divisor = 3,
        .max_rungs = 4,
        .population = 8,
        .repeats = repeats,
    };
    struct sweep s = { .searcher = searcher_create (&config, params, 2) };
    struct searcher *plain = searcher_create (&config, params, 2);
    struct search w = { .n = 0 }, twin = { .s = plain };

    if (!s.searcher)
        return; /* this searcher does not support repeats */
    for (int i = 0; i < STEPS; i++) {
        unsigned long r = draw ();
        w.s = s.searcher;
        look_ahead (&s, &w);
        w.s = s.searcher;
        act (&w, r);
        act (&twin, r);
        assert_same (s.searcher, twin.s);
        if (i == STEPS / 2) {
            sweep_unshare_searcher (&s);
            assert_int_equal (searcher_extend (&s.searcher, 50, 0, 0), 0);
            assert_int_equal (searcher_extend (&twin.s, 50, 0, 0), 0);
        }
    }
    sweep_destroy_searcher (&s);
    searcher_destroy (twin.s);
}

CASE (snapshots_are_copies)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++) {
        search (k, 0);
        search (k, 3);
    }
}

RUN_CASES ()
