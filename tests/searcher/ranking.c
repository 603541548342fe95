/* SPDX-License-Identifier: Apache-2.0 */
/* Population based training: four members, ranked by hand. */
#include "searcher/searcher.h"
#include "tests/unit.h"

static struct searcher *four (void)
{
    const struct search_config config = {
        .name = "pbt", .max_length = 3, .min_length = 1, .population = 4, .smaller_is_better = true
    };

    return searcher_create (&config, NULL, 0);
}

/* Ask, check what is told, and begin it. */
static void next (struct searcher *s, long trial, int64_t length, long from)
{
    struct search_op op;

    assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_RUN);
    assert_int_equal (op.trial, trial);
    assert_int_equal (op.length, length);
    assert_int_equal (op.from, from);
    assert_int_equal (op.from_length, from ? length - 1 : 0);
    assert_int_equal (op.fresh, from || length == 1);
    assert_int_equal (searcher_begin (s, &op, NULL), 0);
}

static void tell (struct searcher *s, long trial, int64_t length, double value)
{
    assert_int_equal (searcher_observe (s, trial, length, &value), 0);
}

/* One worker: the first to come is the worst, which is known when it would go
 * on.  Four workers: it is known by the results of before, at its next end.
 */
static void test_first_arrivals (void **state)
{
    struct searcher *s = four ();

    for (long t = 1; t <= 4; t++) {
        next (s, t, 1, 0);
        tell (s, t, 1, 5 - t);
    }
    next (s, 5, 2, 4);
    next (s, 2, 2, 0);
    searcher_destroy (s);

    s = four ();
    for (long t = 1; t <= 4; t++)
        next (s, t, 1, 0);
    for (long t = 1; t <= 4; t++) {
        tell (s, t, 1, 5 - t);
        next (s, t, 2, 0);
    }
    /* 3 of before: worse than 2 and 1 only */
    tell (s, 2, 2, 2.9);
    next (s, 2, 3, 0);
    /* worse than 2.9 there, and its 4 of before than 2 and 1 */
    tell (s, 1, 2, 3.5);
    next (s, 5, 3, 2);
    searcher_destroy (s);
}

/* A clone is as good as its checkpoint, not as what was there before. */
static void test_clone_is_ranked (void **state)
{
    struct searcher *s = four ();

    for (long t = 1; t <= 4; t++) {
        next (s, t, 1, 0);
        tell (s, t, 1, 5 - t);
    }
    next (s, 5, 2, 4);
    next (s, 2, 2, 0);
    next (s, 3, 2, 0);
    next (s, 4, 2, 0);
    /* the first to come: 1 is worse than nobody's value, whatever it is now */
    tell (s, 5, 2, 9);
    next (s, 5, 3, 0);
    /* 9 is better, and 2 and 1 are than its 3 of before */
    tell (s, 2, 2, 10);
    next (s, 6, 3, 5);
    /* 9 and 10 are better, but its 1 of before is than 3's 2 */
    tell (s, 4, 2, 11);
    next (s, 4, 3, 0);
    searcher_destroy (s);
}

/* The place of the first, a bad one, is filled when there is a checkpoint. */
static void test_bad_place_waits (void **state)
{
    struct searcher *s = four ();
    struct search_op op;

    for (long t = 1; t <= 4; t++)
        next (s, t, 1, 0);
    tell (s, 1, 1, NAN);
    assert_int_equal (searcher_ask (s, &op, NULL), SEARCH_WAIT);
    assert_int_equal (searcher_exit (s, 2), 0);
    tell (s, 3, 1, 1);
    next (s, 5, 2, 3);
    next (s, 6, 2, 3);
    next (s, 3, 2, 0);
    searcher_destroy (s);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test (test_first_arrivals),
    cmocka_unit_test (test_clone_is_ranked),
    cmocka_unit_test (test_bad_place_waits),
};

RUN_TESTS (tests)
