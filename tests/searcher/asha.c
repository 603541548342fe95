/* SPDX-License-Identifier: Apache-2.0 */
/* ASHA promotes the right trials and always terminates. */
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static bool trial3_first (const struct sweep *w, long trial, int segment)
{
    return trial == 3 && segment == 1;
}

static bool trial3_second (const struct sweep *w, long trial, int segment)
{
    return trial == 3 && segment == 2;
}

/* clang-format off */
static const double rising[]
    = { .01, .02, .03, .04, .05, .06, .07, .08, .09, .10, .11, .12 };
static const double falling[]
    = { .12, .11, .10, .09, .08, .07, .06, .05, .04, .03, .02, .01 };
static const double late[]
    = { .10, .11, .12, .01, .02, .03, .04, .05, .06, .07, .08, .09 };
static const double constant[12] = { 0 };

static const struct {
    const double *values;
    bool larger;
    bool (*fails) (const struct sweep *w, long trial, int segment);
    long concurrent, rungs, trials;
    int segments[12];
} decisions[] = {
    { rising,   false, NULL,          16, 3, 12,
      { 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1 } },
    { falling,  true,  NULL,          16, 3, 12,
      { 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1 } },
    { rising,   false, trial3_second, 16, 3, 12,
      { 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1 } },
    { late,     false, trial3_first,  16, 3, 12,
      { 2, 1, 1, 3, 2, 2, 2, 1, 1, 1, 1, 1 } },
    { constant, false, NULL,          16, 3, 12,
      { 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1 } },
    { constant, true,  NULL,          1,  3, 12,
      { 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1 } },
    { rising,   false, NULL,          16, 1, 4,
      { 1, 1, 1, 1 } },
};
/* clang-format on */

CASE (test_decisions)
{
    for (size_t i = 0; i < COUNT (decisions); i++) {
        struct sweep w = { .config = { .name = "asha",
                                       LADDER (decisions[i].trials, 9000, 3, decisions[i].rungs),
                                       .smaller_is_better = !decisions[i].larger,
                                       .max_concurrent = decisions[i].concurrent },
                           .metric = sweep_given,
                           .values = decisions[i].values,
                           .fails = decisions[i].fails };

        sweep_run (&w);
        assert_int_equal (w.trials, decisions[i].trials);
        for (long t = 1; t <= w.trials; t++)
            assert_int_equal (w.segments[t], decisions[i].segments[t - 1]);
        sweep_free (&w);
    }
}

/* With max_concurrent = 0, only the number of workers limits concurrency. */
CASE (test_no_limit)
{
    static const struct {
        const char *name;
        long most;
    } cases[] = { { "asha", 12 }, { "adaptive_asha", 12 } };

    for (size_t i = 0; i < COUNT (cases); i++) {
        struct sweep w = { .config = SEARCH (cases[i].name, LADDER (12, 9000, 3, 3),
                                             .mode = SEARCH_STANDARD),
                           .metric = sweep_given,
                           .values = rising };
        sweep_run (&w);
        assert_int_equal (w.most_running, cases[i].most);
        sweep_free (&w);
    }
}

static void end (struct searcher *s, long trial, int64_t length, double value)
{
    assert_int_equal (searcher_observe (s, trial, length, &value), 0);
}

/* ASHA promotes the best of three trials, which is then rejected.  Once the fourth trial ends,
 * ASHA promotes the best of the three that are left.
 */
CASE (test_forgets)
{
    const struct search_config config = SEARCH ("asha", LADDER (4, 9, 3, 2), .max_concurrent = 4);
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op op;
    long created = 0;

    for (long t = 1; t <= 3; t++)
        assert_int_equal (sweep_next (s, NULL).trial, t);
    for (long t = 1; t <= 3; t++)
        end (s, t, 3, (double)t / 10);
    op = sweep_next (s, NULL);
    assert_true (op.trial == 1 && op.length == 9);
    assert_int_equal (searcher_reject (s, 1), 0);
    assert_int_equal (sweep_next (s, NULL).trial, 4);
    end (s, 4, 3, 0.15);
    assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
    while (searcher_ask (s, &op, NULL) == SEARCH_RUN) {
        op = sweep_next (s, NULL);
        created += op.fresh;
        if (op.length == 9)
            assert_int_equal (op.trial, 4);
        end (s, op.trial, op.length, 1);
    }
    assert_int_equal (created, 1); /* replaces the rejected one */
    assert_true (searcher_progress (s) == 1);
    searcher_destroy (s);
}

/* Rejecting a trial at the top rung also removes the only result of the second rung.  The search
 * must still train one trial in full.
 */
CASE (test_forgets_highest)
{
    const struct search_config config = SEARCH ("asha", LADDER (2, 4, 2, 3));
    struct searcher *s = searcher_create (&config, NULL, 0);
    struct search_op op;
    int64_t longest = 0;
    bool rejected = false;

    while (searcher_ask (s, &op, NULL) == SEARCH_RUN) {
        op = sweep_next (s, NULL);
        if (op.length == 4 && !rejected) {
            assert_int_equal (searcher_reject (s, op.trial), 0);
            rejected = true;
            continue;
        }
        end (s, op.trial, op.length, (double)op.trial);
        longest = op.length > longest ? op.length : longest;
    }
    assert_true (rejected);
    assert_int_equal (longest, 4);
    searcher_destroy (s);
}

/* One bracket has rungs at 300 and 900; the other trains straight to 900. */
CASE (test_brackets)
{
    struct sweep w = { .config = SEARCH ("adaptive_asha", LADDER (5, 900, 3, 2),
                                         .mode = SEARCH_STANDARD, .max_concurrent = 16),
                       .metric = sweep_given,
                       .values = rising };
    long low = 0, promoted = 0;

    sweep_run (&w);
    assert_int_equal (w.trials, 5);
    for (long t = 1; t <= 5; t++) {
        low += w.first[t] == 300;
        promoted += w.first[t] == 300 && w.length[t] == 900;
        assert_true (w.first[t] == 300 || w.first[t] == 900);
    }
    assert_int_equal (low, 3);
    assert_int_equal (promoted, 1);
    assert_int_equal (sweep_count (&w, 900), 3);
    sweep_free (&w);
}

/* clang-format off */
static const double shuffled[3][27] = {
    { 3, 14, 10, 17, 5, 0, 7, 21, 19, 18, 23, 25, 4, 2,
      22, 6, 11, 20, 9, 26, 15, 16, 8, 1, 13, 24, 12 },
    { 23, 25, 11, 10, 22, 1, 5, 26, 19, 13, 9, 17, 16, 0,
      7, 21, 6, 12, 20, 14, 15, 3, 8, 2, 24, 18, 4 },
    { 3, 20, 17, 15, 0, 24, 4, 7, 14, 16, 19, 23, 12, 18,
      10, 13, 22, 26, 6, 8, 9, 21, 5, 11, 25, 2, 1 },
};
/* clang-format on */

static const struct {
    int values;
    long concurrent;
    long ends[3];
} shuffles[] = {
    { 0, 1, { 18, 6, 3 } }, { 0, 9, { 18, 6, 3 } }, { 0, 27, { 18, 6, 3 } },
    { 1, 1, { 15, 8, 4 } }, { 1, 9, { 15, 8, 4 } }, { 1, 27, { 15, 8, 4 } },
    { 2, 1, { 15, 7, 5 } }, { 2, 9, { 15, 7, 5 } }, { 2, 27, { 15, 7, 5 } },
};

CASE (test_shuffled)
{
    for (size_t i = 0; i < COUNT (shuffles); i++) {
        struct sweep w = { .config = SEARCH ("asha", LADDER (27, 9, 3, 3),
                                             .max_concurrent = shuffles[i].concurrent),
                           .metric = sweep_given,
                           .values = shuffled[shuffles[i].values] };

        sweep_run (&w);
        assert_int_equal (sweep_count (&w, 1), shuffles[i].ends[0]);
        assert_int_equal (sweep_count (&w, 3), shuffles[i].ends[1]);
        assert_int_equal (sweep_count (&w, 9), shuffles[i].ends[2]);
        assert_true (w.most_running <= shuffles[i].concurrent);
        sweep_free (&w);
    }
}

/* ---- comparison with a reference model: a sorted list for each rung ---- */

struct entry {
    double value;
    long trial;
    bool promoted;
};

struct model {
    const struct sweep *w;
    int64_t *length; /* of the rungs */
    int rungs;
    struct entry list[8][512];
    int n[8];
    long queue[4096], head, tail; /* promoted trials */
    int64_t to[4096];
    long created, running;
};

static void model_promote (struct model *m, int rung, struct entry *e)
{
    e->promoted = true;
    m->queue[m->tail] = e->trial;
    m->to[m->tail++] = m->length[rung + 1];
}

static void model_last (struct model *m)
{
    int rung = m->rungs - 1;

    if (m->created < m->w->config.max_trials || m->running > 0 || m->head < m->tail)
        return;
    while (m->n[rung] == 0)
        rung--;
    if (rung < m->rungs - 1 && isfinite (m->list[rung][0].value)
        && m->n[rung] < m->w->config.divisor)
        model_promote (m, rung, &m->list[rung][0]);
}

static void model_end (struct model *m, const struct event *e)
{
    int rung = 0, at = 0, n, old, new;
    double value = e->what == EVENT_EXIT || !isfinite (e->value) ? INFINITY
                   : m->w->config.smaller_is_better              ? e->value
                                                                 : -e->value;
    struct entry *list, *up = NULL;

    while (m->length[rung] != e->op.length)
        rung++;
    list = m->list[rung];
    n = m->n[rung]++;
    m->running--;
    old = n / m->w->config.divisor;
    new = (n + 1) / m->w->config.divisor;
    while (at < n && list[at].value <= value)
        at++;
    memmove (list + at + 1, list + at, (n - at) * sizeof (*list));
    list[at] = (struct entry){ value, e->op.trial, false };
    if (rung < m->rungs - 1) {
        if (at < new)
            up = list + at;
        else if (new != old && !list[old].promoted)
            up = list + old;
        if (up && isfinite (up->value))
            model_promote (m, rung, up);
    }
    model_last (m);
}

static void model_check (const struct sweep *w, int64_t *length, int rungs)
{
    struct model *m = calloc (1, sizeof (*m));

    assert_non_null (m);
    m->w = w;
    m->length = length;
    m->rungs = rungs;
    for (size_t i = 0; i < w->n_events; i++) {
        const struct event *e = w->events + i;
        if (e->what != EVENT_BEGIN) {
            model_end (m, e);
            continue;
        }
        m->running++;
        assert_true (e->op.fresh == (m->head == m->tail));
        if (e->op.fresh) {
            assert_int_equal (e->op.trial, ++m->created);
            assert_int_equal (e->op.length, length[0]);
        } else {
            assert_int_equal (e->op.trial, m->queue[m->head]);
            assert_int_equal (e->op.length, m->to[m->head++]);
        }
    }
    assert_int_equal (m->head, m->tail);
    assert_int_equal (m->created, w->config.max_trials);
    free (m);
}

/* Few distinct values, so that many tie; some are not finite. */
static double noisy (const struct sweep *w, long trial, int64_t length)
{
    uint64_t value = sweep_noise (w, trial, length, 40);

    return value == 0 ? NAN : value == 1 ? -INFINITY : 0.25 * value;
}

CASE (test_model)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        static const double divisors[] = { 2, 2.5, 3, 4, 1.5 };
        uint64_t r = seed;
        struct sweep w = { .config = { .name = "asha",
                                       .seed = seed,
                                       .max_trials = 1 + sweep_random (&r, 120),
                                       .max_length = 1 + sweep_random (&r, 300),
                                       .smaller_is_better = seed % 2,
                                       .divisor = divisors[seed % COUNT (divisors)],
                                       .max_rungs = 1 + sweep_random (&r, 6),
                                       .max_concurrent = sweep_random (&r, 12) },
                           .metric = noisy,
                           .fails = seed % 3 ? NULL : sweep_seldom,
                           .workers = sweep_random (&r, 9),
                           .shuffle = seed % 4 };
        struct search_rung rungs[8];
        int64_t length[8];
        int n = searcher_preview (&w.config, NULL, 0, rungs, 8);

        assert_true (n >= 1 && n <= 6);
        for (int i = 0; i < n; i++)
            length[i] = rungs[i].length;
        sweep_run (&w);
        model_check (&w, length, n);
        sweep_free (&w);
    }
}

RUN_CASES ()
