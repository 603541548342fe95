/* SPDX-License-Identifier: Apache-2.0 */
/* Population based training: four members, with ranks worked out by hand. */
#include "tests/searcher/sweep.h"
#include "tests/unit.h"

static struct searcher *four (void)
{
    const struct search_config config =
        SEARCH ("pbt", .max_length = 3, .min_length = 1, .population = 4);

    return searcher_create (&config, NULL, 0);
}

/* Ask for the next operation, check it, and begin it. */
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

/* The first result is the worst.  With one worker, the whole generation is known before that
 * trial continues, and a clone replaces it.  With four workers it continues at once, and is
 * compared when its next segment ends.
 */
CASE (test_first_arrivals)
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
    /* its 3 of the first generation is worse than 2 and 1 only */
    tell (s, 2, 2, 2.9);
    next (s, 2, 3, 0);
    /* worse than 2.9 now, and its 4 of the first generation is worse than 2 and 1 */
    tell (s, 1, 2, 3.5);
    next (s, 5, 3, 2);
    searcher_destroy (s);
}

/* A clone ranks by the results of its checkpoint, not by those of the trial that it replaced. */
CASE (test_clone_is_ranked)
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
    /* the first result of this generation, and its inherited 1 is the best of the last one */
    tell (s, 5, 2, 9);
    next (s, 5, 3, 0);
    /* 9 is better, and so are 2 and 1 than its 3 of the last generation */
    tell (s, 2, 2, 10);
    next (s, 6, 3, 5);
    /* 9 and 10 are better, but its 1 of the last generation beats trial 3's 2 */
    tell (s, 4, 2, 11);
    next (s, 4, 3, 0);
    searcher_destroy (s);
}

/* A clone replaces a bad trial only once another trial has a checkpoint. */
CASE (test_bad_place_waits)
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

RUN_CASES ()
