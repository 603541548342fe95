/* SPDX-License-Identifier: Apache-2.0 */
/* The results at one rung: the best share, and the best result. */
#include "searcher/schedulers/rung.h"
#include "tests/unit.h"

enum { CAPACITY = 6 };

/* Unused slots hold the best possible value, so that reading one makes a test fail. */
struct place {
    struct rung rung;
    double value[CAPACITY];
    int32_t trial[CAPACITY], ranked[CAPACITY];
};

static struct results results_in (struct place *p)
{
    *p = (struct place){ .rung.results = 0 };
    for (int i = 0; i < CAPACITY; i++) {
        p->value[i] = -INFINITY;
        p->ranked[i] = CAPACITY - 1;
    }
    return (struct results){ &p->rung, CAPACITY, p->value, p->trial, p->ranked };
}

static long best_trial (const struct results *r)
{
    int32_t best = rung_best (r);

    return best < 0 ? -1 : r->trial[best];
}

CASE (test_best)
{
    struct place p;
    struct results r = results_in (&p);

    assert_int_equal (best_trial (&r), -1);
    rung_add (&r, 11, 3, 0);
    assert_int_equal (best_trial (&r), 11);
    rung_add (&r, 12, 1, 1);
    assert_int_equal (best_trial (&r), 12);
    rung_add (&r, 13, 2, 2);
    assert_int_equal (best_trial (&r), 12);
    rung_add (&r, 14, 1, 2);
    assert_int_equal (best_trial (&r), 12);
}

CASE (test_removed)
{
    struct place p;
    struct results r = results_in (&p);

    for (int i = 0; i < 5; i++)
        rung_add (&r, 10 + i, 5 - i, i / 2);
    for (int i = 4; i >= 0; i--) {
        assert_int_equal (best_trial (&r), 10 + i);
        assert_int_equal (r.rung->results, i + 1);
        rung_remove (&r, 10 + i);
    }
    assert_int_equal (best_trial (&r), -1);
}

CASE (test_sorted)
{
    static const double values[] = { 4, 1, 5, 1, 3, 2 };
    static const long worst_first[] = { 14, 15, 13, 11 };
    struct place p;
    struct results r = results_in (&p);

    for (int i = 0; i < CAPACITY; i++)
        rung_add (&r, 10 + i, values[i], 0);
    rung_resize (&r, 4);
    rung_sort (&r);
    for (int i = 0; i < 4; i++)
        assert_int_equal (r.trial[r.ranked[i]], worst_first[i]);
    rung_resize (&r, 100);
    assert_int_equal (r.rung->top, CAPACITY);
}

RUN_CASES ()
