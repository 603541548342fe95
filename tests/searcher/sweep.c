/* SPDX-License-Identifier: Apache-2.0 */
/* Run a whole search with an artificial metric. */
#include "tests/searcher/sweep.h"

#include "tests/unit.h"

uint64_t sweep_random (uint64_t *state, uint64_t bound)
{
    *state = *state * UINT64_C (6364136223846793005) + UINT64_C (1442695040888963407);
    return (*state >> 33) % bound;
}

uint64_t sweep_noise (const struct sweep *w, long trial, int64_t length, uint64_t bound)
{
    uint64_t r = w->config.seed + trial * 1000 + length;

    (void)sweep_random (&r, bound);
    return sweep_random (&r, bound);
}

double sweep_given (const struct sweep *w, long trial, int64_t length)
{
    return w->values[trial - 1];
}

double sweep_plain (const struct sweep *w, long trial, int64_t length)
{
    return trial + length;
}

bool sweep_seldom (const struct sweep *w, long trial, int segment)
{
    uint64_t r = w->config.seed * 77 + trial * 10 + segment;

    (void)sweep_random (&r, 2);
    return sweep_random (&r, 12) == 0;
}

bool same_bytes (const struct searcher *a, const struct searcher *b)
{
    return searcher_size (a) == searcher_size (b) && !memcmp (a, b, searcher_size (a));
}

struct search_op sweep_next (struct searcher *s, double *x)
{
    struct search_op op;

    assert_int_equal (searcher_ask (s, &op, x), SEARCH_RUN);
    assert_int_equal (searcher_begin (s, &op, x), 0);
    return op;
}

void sweep_apply (struct searcher *s, const struct event *e)
{
    switch (e->what) {
    case EVENT_BEGIN:
        assert_int_equal (searcher_begin (s, &e->op, e->x), 0);
        break;
    case EVENT_TELL:
        assert_int_equal (e->objectives > 1
                              ? searcher_observe (s, e->op.trial, e->op.length, e->values)
                              : searcher_observe (s, e->op.trial, e->op.length, &e->value),
                          0);
        break;
    case EVENT_EXIT:
        assert_int_equal (searcher_exit (s, e->op.trial), 0);
        break;
    case EVENT_REJECT:
        assert_int_equal (searcher_reject (s, e->op.trial), 0);
        break;
    case EVENT_REPORT:
        assert_int_equal (searcher_report (s, e->op.trial, e->op.length, e->value), 0);
        break;
    case EVENT_SPEND:
        assert_int_equal (searcher_spend (s, e->op.trial, e->value), 0);
        break;
    }
}

/* Replace the state by a copy.  Overwrite the old state before freeing it, so that a pointer into
 * it shows.
 */
static void swap_state (struct sweep *w)
{
    struct searcher *copy = searcher_copy (w->s);

    assert_non_null (copy);
    assert_true (same_bytes (copy, w->s));
    memset (w->s, 0xa5, searcher_size (copy));
    searcher_destroy (w->s);
    w->s = copy;
}

static void *grow (void *p, size_t n, size_t size)
{
    p = realloc (p, (n + 1) * size);
    assert_non_null (p);
    return p;
}

static void apply (struct sweep *w, struct event *e)
{
    double before = searcher_progress (w->s);

    sweep_apply (w->s, e);
    e->progress = searcher_progress (w->s);
    if (w->n_events % 64 == 0)
        w->events = grow (w->events, w->n_events + 64, sizeof (*w->events));
    w->events[w->n_events++] = *e;
    assert_true (e->progress >= before);
    assert_true (e->progress <= 1);
    swap_state (w);
}

static void add_trial (struct sweep *w, const struct event *e)
{
    size_t i = ++w->trials;

    assert_int_equal (e->op.trial, i);
    w->segments = grow (w->segments, i, sizeof (*w->segments));
    w->length = grow (w->length, i, sizeof (*w->length));
    w->first = grow (w->first, i, sizeof (*w->first));
    w->x = grow (w->x, i, sizeof (*w->x));
    w->at = grow (w->at, i, sizeof (*w->at));
    w->begun = grow (w->begun, i, sizeof (*w->begun));
    w->at[i] = 0;
    w->begun[i] = e->op;
    w->segments[i] = 0;
    w->first[i] = e->op.length;
    memcpy (w->x[i], e->x, sizeof (e->x));
}

static bool begin_one (struct sweep *w)
{
    struct event e = { .what = EVENT_BEGIN };
    enum search_answer answer = searcher_ask (w->s, &e.op, e.x);

    if (answer != SEARCH_RUN) {
        assert_int_equal (answer, w->n_running > 0 ? SEARCH_WAIT : SEARCH_DONE);
        assert_true ((answer == SEARCH_DONE) == (searcher_progress (w->s) == 1));
        return false;
    }
    assert_true (searcher_progress (w->s) < 1);
    apply (w, &e);
    if (e.op.fresh)
        add_trial (w, &e);
    assert_true (e.op.trial >= 1 && e.op.trial <= w->trials);
    assert_true (w->segments[e.op.trial] == 0 || e.op.length > w->length[e.op.trial]);
    w->segments[e.op.trial]++;
    w->length[e.op.trial] = e.op.length;
    w->running = grow (w->running, w->n_running, sizeof (*w->running));
    w->running[w->n_running++] = e.op;
    if (w->n_running > w->most_running)
        w->most_running = w->n_running;
    return true;
}

static void spend (struct sweep *w, long trial)
{
    struct event e = { .what = EVENT_SPEND, .op = { .trial = trial } };

    e.value = w->seconds (w, trial);
    apply (w, &e);
}

/* Send the next report of a trial; return false if its segment ends instead. */
static bool goes_on (struct sweep *w, struct search_op *op)
{
    struct event e = { .what = EVENT_REPORT, .op = *op };

    if (!w->report)
        return false;
    e.op.length = w->at[op->trial] + w->report;
    if (e.op.length >= op->length)
        return false;
    w->at[op->trial] = e.op.length;
    e.value = w->metric (w, op->trial, e.op.length);
    apply (w, &e);
    if (!searcher_stops (w->s, op->trial))
        return true;
    op->length = w->length[op->trial] = e.op.length;
    return false;
}

/* Decide how the segment ends. */
static void set_end (struct sweep *w, struct event *e)
{
    int segment = w->segments[e->op.trial];

    if (w->rejects && w->rejects (w, e->op.trial, segment))
        e->what = EVENT_REJECT;
    else if (w->fails && w->fails (w, e->op.trial, segment))
        e->what = EVENT_EXIT;
    else if (w->config.objectives > 1) {
        e->objectives = w->config.objectives;
        w->metrics (w, e->op.trial, e->values);
    } else
        e->value = w->metric (w, e->op.trial, e->op.length);
}

static void end_one (struct sweep *w)
{
    long i = w->shuffle ? sweep_random (&w->shuffle, w->n_running) : 0;
    struct event e = { .what = EVENT_TELL, .op = w->running[i] };

    if (goes_on (w, &e.op))
        return;
    memmove (w->running + i, w->running + i + 1, (w->n_running - i - 1) * sizeof (*w->running));
    w->n_running--;
    set_end (w, &e);
    apply (w, &e);
    if (w->seconds)
        spend (w, e.op.trial);
}

void sweep_run (struct sweep *w)
{
    w->s = searcher_create (&w->config, w->params, w->n);
    assert_non_null (w->s);
    assert_true (searcher_progress (w->s) == 0);
    do {
        while ((!w->workers || w->n_running < w->workers) && begin_one (w))
            if (w->more && !w->more (w))
                return;
        if (w->n_running == 0)
            return;
        do /* several segments may end before a worker asks */
            end_one (w);
        while (w->n_running > 0 && w->shuffle && sweep_random (&w->shuffle, 2));
    } while (!w->more || w->more (w));
}

void sweep_free (struct sweep *w)
{
    searcher_destroy (w->s);
    free (w->segments);
    free (w->length);
    free (w->first);
    free (w->at);
    free (w->begun);
    free (w->x);
    free (w->events);
    free (w->running);
}

long sweep_count (const struct sweep *w, int64_t length)
{
    long n = 0;

    for (long i = 1; i <= w->trials; i++)
        n += w->length[i] == length;
    return n;
}
