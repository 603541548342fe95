/* SPDX-License-Identifier: Apache-2.0 */
/* Check how long GPUs have been idle, and the options of --dl-monitor for it. */
#include <math.h>
#include <string.h>

#include "launcher/monitor/monitor.h"
#include "runtime/rank/plugin_options.h"
#include "tests/unit.h"

enum { LIMIT = 600 };

/* Two GPUs with one process each; the rank is pid - 100. */
static struct gpu_readings reading (double first, double second)
{
    struct gpu_readings r = { .n = 2, .nprocesses = 2 };

    r.gpu[0].index = 1;
    r.gpu[1].index = 3;
    r.gpu[0].v[GPU_BUSY] = first;
    r.gpu[1].v[GPU_BUSY] = second;
    r.process[0] = (struct gpu_process){ .gpu = 1, .pid = 104 };
    r.process[1] = (struct gpu_process){ .gpu = 3, .pid = 106 };
    return r;
}

static long rank_of_pid (const void *arg, pid_t pid)
{
    (void)arg;
    return pid - 100;
}

/* Take the same reading every 5 s, from 'from' until 'until'. */
static void take (struct idle_gpus *g, double first, double second, double from, double until)
{
    struct gpu_readings r = reading (first, second);

    for (double t = from; t <= until; t += 5)
        idle_take (g, &r, t);
}

static struct idle_gpus begin (void)
{
    return (struct idle_gpus){ .limit = LIMIT, .last = NAN };
}

static const char *text (const struct idle_gpus *g, double now)
{
    static char buf[512];
    struct gpu_readings r = reading (0, 0);

    idle_text (g, &r, "n1", now, rank_of_pid, NULL, buf, sizeof (buf));
    return buf;
}

CASE (gpus_are_idle_for_the_whole_time)
{
    struct idle_gpus g = begin ();
    const char *told;

    take (&g, 0, 0.9, 0, LIMIT - 5);
    assert_false (idle_all (&g));
    assert_string_equal (text (&g, LIMIT - 5), "");
    take (&g, 0, 0, LIMIT, LIMIT);
    assert_true (idle_all (&g));
    told = text (&g, LIMIT);
    assert_non_null (strstr (told, "GPUs 1, 3 of n1 (ranks 4, 6) have been idle since "));
    assert_non_null (strstr (told, ", for 10 min"));
    take (&g, 0, 0, LIMIT + 5, 2 * LIMIT); /* reported only once */
    assert_string_equal (text (&g, 2 * LIMIT), "");
    assert_true (idle_all (&g));
}

CASE (work_in_between_restarts_the_clock)
{
    struct idle_gpus g = begin ();

    take (&g, 0, 0, 0, LIMIT - 5);
    take (&g, 1, 0, LIMIT, LIMIT);
    assert_non_null (strstr (text (&g, LIMIT), "GPU 3 of n1 (rank 6) has been idle since "));
    assert_false (idle_all (&g));
    take (&g, 0, 0, LIMIT + 5, 2 * LIMIT);
    assert_false (idle_all (&g));
    take (&g, 0, 0, 2 * LIMIT + 5, 2 * LIMIT + 5);
    assert_true (idle_all (&g));
    assert_non_null (strstr (text (&g, 2 * LIMIT + 5), "GPU 1 of n1 (rank 4)"));
    /* after work, both are reported again */
    take (&g, 50, 50, 2 * LIMIT + 10, 2 * LIMIT + 10);
    take (&g, 0, 0, 2 * LIMIT + 15, 3 * LIMIT + 15);
    assert_non_null (strstr (text (&g, 3 * LIMIT + 15), "GPUs 1, 3 of n1"));
}

/* Usage may be unknown: for a MIG device, if the driver does not answer, or while a job is
 * suspended.
 */
CASE (unknown_load_is_not_idleness)
{
    struct idle_gpus g = begin ();
    struct gpu_readings none = { .n = 0 };

    take (&g, NAN, 0, 0, 2 * LIMIT);
    assert_false (idle_all (&g));
    assert_true (g.gpus[1].is_long);
    take (&g, 0, 0, 10 * LIMIT, 11 * LIMIT - 5);
    assert_false (g.gpus[0].is_long || g.gpus[1].is_long);
    take (&g, 0, 0, 11 * LIMIT, 11 * LIMIT);
    assert_true (idle_all (&g));
    idle_take (&g, &none, 11 * LIMIT + 5);
    assert_false (idle_all (&g));
}

CASE (a_reappearing_gpu_counts_as_new)
{
    struct idle_gpus g = begin ();
    struct gpu_readings r = reading (0, 0);

    r.n = 1;
    for (double t = 0; t <= LIMIT; t += 5)
        idle_take (&g, &r, t);
    assert_true (idle_all (&g));
    take (&g, 0, 0, LIMIT + 5, LIMIT + 5);
    assert_false (idle_all (&g));
    assert_true (g.gpus[0].is_long && !g.gpus[0].is_new && !g.gpus[1].is_long);
}

/* ---- the option ---- */

CASE (the_option_is_read)
{
    static const struct {
        const char *value;
        long seconds, idle;
        bool parks;
    } good[] = {
        { "1", 1, 0, false },
        { "3600", 3600, 0, false },
        { "idle:30", 5, 30, false },
        { "idle:30,warn", 5, 30, false },
        { "idle:1,park", 5, 1, true },
        { "2,idle:10080,park", 2, 10080, true },
        { "idle:10,warn,7", 7, 10, false },
    };
    static const char *const bad[] = {
        "",
        "0",
        "3601",
        "-1",
        "5s",
        "idle",
        "idle:",
        "warn",
        "park",
        "5,park",
        "idle:0",
        "idle:10081",
        "idle:1.5",
        "idle:5,kill",
        "5,",
        "idle:5,",
        ",idle:5",
        "idle:5 ",
        "99999999999999999999",
        "idle:5,,park",
        "idle:5,park,warn",
    };
    struct sample_options s;
    char why[320];

    for (size_t i = 0; i < sizeof (good) / sizeof (*good); i++) {
        assert_int_equal (sample_options_parse (good[i].value, &s), 0);
        assert_int_equal (s.seconds, good[i].seconds);
        assert_int_equal (s.idle, good[i].idle);
        assert_true (s.parks == good[i].parks);
        assert_int_equal (plugin_option_check (PLUGIN_MONITOR, good[i].value, why, sizeof (why)),
                          0);
    }
    for (size_t i = 0; i < sizeof (bad) / sizeof (*bad); i++) {
        assert_int_equal (sample_options_parse (bad[i], &s), -1);
        assert_int_equal (plugin_option_check (PLUGIN_MONITOR, bad[i], why, sizeof (why)), -1);
    }
    assert_int_equal (plugin_option_check (PLUGIN_MONITOR, "off", why, sizeof (why)), 0);
    assert_int_equal (plugin_option_check (PLUGIN_MONITOR, "31,idle:1", why, sizeof (why)), -1);
    assert_string_equal (why,
                         "a GPU that is idle for 1 min must be sampled each 30 s or more often");
}

RUN_CASES ()
