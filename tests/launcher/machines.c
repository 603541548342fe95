/* SPDX-License-Identifier: Apache-2.0 */
/* Check which node is blamed for failures. */
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "tests/launcher/applied.h"

/* A sweep that has started so many trials. */
static struct sweep *begun (int trials)
{
    struct sweep *s = created ("\"m\"", "name = \"random\"; max_trials = 40;");
    char text[96];

    for (int i = 1; i <= trials; i++) {
        snprintf (text, sizeof (text), "{'op':'begin','trial':%d,'length':1,'x':[0.5]}", i);
        put (s, text);
    }
    return s;
}

FOLDER_CASE (machines)
{
    struct sweep *s = begun (2);

    put (s, END ("fail", "1", "1", ",'host':'bad'"));
    put (s, END ("fail", "1", "2", ",'host':'bad','free':true"));
    assert_int_equal (sweep_host (s, "bad")->fails, 1);
    assert_int_equal (sweep_trial (s, 1)->tries.failed, 1);
    put (s, END ("fail", "2", "1", ",'host':'bad'"));
    assert_int_equal (sweep_host (s, "bad")->fails, 2);
    assert_int_equal (sweep_host (s, "bad")->trials[1], 2);
    put (s, END ("result", "2", "2", ",'length':1,'metric':1,'host':'bad','gpus':'3'"));
    assert_int_equal (sweep_host (s, "bad")->fails, 0);
    assert_int_equal (sweep_host (s, "bad")->results, 1);
    assert_string_equal (sweep_trial (s, 2)->host, "bad");
    assert_string_equal (sweep_trial (s, 2)->gpus, "3");
    sweep_close (s);
}

/* Attempt 'k' of trial 'n' ends at 'host'. */
static void end_at (struct sweep *s, const char *op, int n, int k, const char *host)
{
    char text[160];

    snprintf (text, sizeof (text),
              "{'op':'%s','trial':%d,'attempt':%d,'host':'%s','length':1,"
              "'metric':1}",
              op, n, k, host);
    put (s, text);
}

FOLDER_CASE (spoilers)
{
    struct sweep *s = begun (40);

    for (int i = 1; i <= 4; i++)
        end_at (s, "fail", 1 + i % 2, (i + 1) / 2, "bad");
    assert_false (host_spoils (s, "bad", 3)); /* no trial has succeeded elsewhere */
    for (int i = 11; i <= 14; i++)
        end_at (s, "result", i, 1, "good");
    assert_false (host_spoils (s, "bad", 3));
    end_at (s, "result", 15, 1, "good");
    assert_true (host_spoils (s, "bad", 3));
    assert_false (host_spoils (s, "other", 3));
    end_at (s, "result", 3, 1, "bad"); /* a success clears its failures */
    for (int i = 1; i <= 4; i++)
        end_at (s, "fail", 1 + i % 2, 2 + (i + 1) / 2, "bad");
    assert_false (host_spoils (s, "bad", 4));
    for (int i = 16; i <= 20; i++)
        end_at (s, "result", i, 1, "good");
    assert_true (host_spoils (s, "bad", 4));
    put (s, "{'op':'exclude','host':'bad','why':'w'}");
    /* the last node that is left is never blamed */
    for (int i = 1; i <= 8; i++)
        end_at (s, "fail", 30 + i % 2, (i + 1) / 2, "good");
    for (int i = 21; i <= 29; i++)
        end_at (s, "result", i, 1, "bad");
    assert_false (host_spoils (s, "good", 39));
    sweep_close (s);
}

/* If one trial keeps failing, the trial is to blame, not the node. */
FOLDER_CASE (a_bad_trial_does_not_make_a_node_bad)
{
    struct sweep *s = begun (12);

    for (int i = 1; i <= 8; i++)
        end_at (s, "fail", 1, i, "bad");
    for (int i = 2; i <= 10; i++)
        end_at (s, "result", i, 1, "good");
    assert_false (host_spoils (s, "bad", 1));
    assert_true (host_spoils (s, "bad", 11));
    sweep_close (s);
}

RUN_CASES ()
