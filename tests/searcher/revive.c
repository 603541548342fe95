/* SPDX-License-Identifier: Apache-2.0 */
/* Trials that failed and run again. */
#include "searcher/state/state.h"
#include "tests/searcher/extend.h"

CASE (test_revive)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        for (int which = 1; which <= 12; which += 5) {
            struct run *r = run_open (k, NULL);
            long trials, failed = 0;
            for (int i = 1; i < which; i++)
                (void)advance (r, 1);
            r->fails = 100;
            while (r->open == 0 && begin (r) == SEARCH_RUN)
                ;
            while (r->open > 0 && failed == 0) {
                end_any (r);
                for (long i = 1; i <= r->trials; i++)
                    if (r->job[i].failed)
                        failed = i;
            }
            r->fails = 0;
            finish (r);
            if (failed == 0) { /* the search was done before a trial failed */
                run_close (r);
                continue;
            }
            trials = r->trials;
            revive (r, failed);
            assert_int_equal (searcher_revive (r->s, failed), -1);
            /* make this trial the best */
            r->job[failed].x[0] = 0.3;
            r->job[failed].x[1] = -5;
            finish (r);
            assert_int_equal (r->trials, trials);
            if (strcmp (k->name, "pbt") && !(k->needs & HAS_REPORTS))
                assert_true (r->job[failed].length > 0);
            /* ASHA promotes it, because it is now the best of its rung */
            if (!strcmp (k->name, "asha"))
                assert_int_equal (r->job[failed].length, 9);
            run_close (r);
        }
}

CASE (test_revive_repeat)
{
    struct run *r =
        run_open (kind ("random"), &(struct search_config){ .max_trials = 2, .repeats = 2 });

    r->workers = 4;
    (void)advance (r, 4);
    assert_int_equal (r->open, 4);
    r->fails = 100;
    end (r, 1);
    revive (r, 1); /* while trial 2 is running */
    end (r, 1);
    end (r, 2);
    end (r, 4);
    r->fails = 0;
    end (r, 3);
    finish (r);
    assert_int_equal (searcher_revive (r->s, 3), -1);
    revive (r, 4);
    revive (r, 2);
    end (r, 2);
    assert_int_equal (searcher_observe (r->s, 1, 9, &(double){ 1 }), -1);
    revive (r, 1);
    finish (r);
    assert_int_equal (count_at (r, 9), 4);
    run_close (r);
}

/* A trial that failed in its second segment and is revived trains to the end of that segment,
 * even if the search was extended in between.
 */
CASE (test_revive_longer)
{
    struct run *r = run_open (kind ("random"), &(struct search_config){ .max_trials = 1 });

    finish (r);
    extend (r, 0, 20);
    (void)advance (r, 1);
    r->fails = 100;
    end (r, 1);
    extend (r, 0, 50);
    revive (r, 1);
    assert_int_equal (searcher_observe (r->s, 1, 50, &(double){ 1 }), -1);
    r->fails = 0;
    end (r, 1);
    assert_int_equal (r->job[1].length, 20);
    finish (r);
    assert_int_equal (r->job[1].length, 50);
    run_close (r);
}

/* Reviving a trial clears its result only at the rung where it failed. */
CASE (test_revive_rung)
{
    struct run *r = run_open (kind ("pasha"), NULL);
    long failed = 0;
    double low;

    r->workers = 1;
    for (r->fails = 0; !failed;) {
        while (r->open == 0)
            assert_int_equal (begin (r), SEARCH_RUN);
        for (long i = 1; i <= r->trials; i++)
            if (r->job[i].open && r->job[i].length > 0)
                failed = i;
        r->fails = failed ? 100 : 0;
        end_any (r);
    }
    low = searcher_values (r->s, failed)[0];
    assert_true (isfinite (low));
    revive (r, failed);
    assert_true (searcher_values (r->s, failed)[0] == low);
    assert_true (isnan (searcher_values (r->s, failed)[1]));
    run_close (r);
}

RUN_CASES ()
