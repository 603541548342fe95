/* SPDX-License-Identifier: Apache-2.0 */
/* Check which failures count as the same, and when trials share a fault. */
#include "launcher/sweep/replay.h"
#include "tests/unit.h"

/* clang-format off */
static const struct {
    const char *why, *key;
    enum condition_reason cause;
} keys[] = {
    { "exit status 1: No module named 'numpy'",           "exit status 1: No module named 'numpy'" },
    { "exit status 2: python3: can't open '/a/b 1.py'",   "exit status 2: python3: can't open '/ #.py'" },
    { "exit status 1: loss 0.25 at 0x7f12ab, step 17",    "exit status 1: loss #.# at #, step #" },
    { "killed by signal 11 (Segmentation fault): at 3",   "killed by signal 11 (Segmentation fault): at #" },
    { "ended without logging the metric \"a\"; logged: b3", "ended without logging the metric \"a\"",
      REASON_METRIC_MISSING },
    { "exit status 1: trials/0001/a.3/log: no such file", "exit status 1: / no such file" },
    { "exit status 1: cuda:0 x3 layer12",                 "exit status 1: cuda:# x3 layer12" },
    { "exit status 3: rank 1 on n-2.x was the first to fail", "exit status 3: rank # on # was the first to fail" },
    { "exit status 3: rank 1 on n1 was the first to fail, after rank 0 on n1 had ended with status 0",
      "exit status 3: rank # on # was the first to fail, after rank # on # had ended with status #" },
    { "rank 0 on n1 was killed by signal 9 (Killed)",     "rank # on # was killed by signal 9 (Killed)" },
    { "no rank has made progress for 15 s; rank 2 on n1 is elsewhere", "no rank has made progress for # s",
      REASON_HANG },
    { "",                                                 "" },
};
/* clang-format on */

CASE (what_is_the_same)
{
    char key[FAULT_KEY];
    char long_why[2 * FAULT_KEY];

    for (size_t i = 0; i < COUNT (keys); i++) {
        fault_key (key, keys[i].cause, keys[i].why);
        assert_string_equal (key, keys[i].key);
    }
    memset (long_why, 'x', sizeof (long_why) - 1);
    long_why[sizeof (long_why) - 1] = '\0';
    fault_key (key, REASON_NONE, long_why);
    assert_int_equal (strlen (key), FAULT_KEY - 1);
}

static void failed (struct sweep *s, const char *why, const char *host, bool free)
{
    const struct event e = { .op = EVENT_FAIL,
                             .by = "w",
                             .trial = 1,
                             .attempt = 1,
                             .why = why,
                             .host = host,
                             .free = free };

    fault_note (s, &e);
}

CASE (when_it_is_shared)
{
    struct sweep s = { .nresults = 0 };
    char why[64];

    for (int i = 0; i < 100; i++) { /* too many different ones to track */
        snprintf (why, sizeof (why), "exit status %d", i);
        failed (&s, why, "n1", false);
    }
    assert_null (fault_shared (&s));
    faults_forget (&s);
    failed (&s, "exit status 1: at 1", "n1", false);
    failed (&s, "exit status 1: at 2", "n1", true); /* does not count */
    failed (&s, "exit status 1: at 2", "n1", false);
    assert_null (fault_shared (&s));
    assert_int_equal (fault_like (&s, REASON_NONE, "exit status 1: at 9")->count, 2);
    assert_null (fault_like (&s, REASON_NONE, "exit status 2: at 9"));
    failed (&s, "exit status 1: at 3", "n1", false);
    assert_non_null (fault_shared (&s));
    assert_false (fault_shared (&s)->spread);
    failed (&s, "exit status 1: at 4", "n2", false);
    assert_true (fault_shared (&s)->spread);
    assert_string_equal (fault_shared (&s)->why, "exit status 1: at 4");
    s.nresults = 1;
    assert_null (fault_shared (&s));
    s.nresults = 0;
    faults_forget (&s);
    assert_null (fault_most (&s));
}

RUN_CASES ()
