/* SPDX-License-Identifier: Apache-2.0 */
/* Check how the slow rank is found from samples of how ranks spend their time. */
#include <string.h>

#include "launcher/heal/heal.h"
#include "tests/unit.h"

enum { N = 4, WINDOW = 10 };

/* How a rank spends its time. */
struct share {
    double active, ready, throttled;
    char state;
};

struct made {
    struct slow_ranks *slow;
    struct heal_seen ranks[N];
    double now;
    char why[256];
};

static void begin (struct made *m)
{
    *m = (struct made){ .slow = slow_create (N), .now = 1000 };
    for (int i = 0; i < N; i++)
        m->ranks[i] = (struct heal_seen){ .came = true, .host = i < 2 ? "n1" : "n2" };
}

/* Send a heartbeat of each rank once a second for so many seconds.  Returns the number of events,
 * and the last one in 'last'.
 */
static int go_on (struct made *m, const struct share *shares, int seconds, enum slow_news *last)
{
    char why[256];
    int news = 0;

    for (int s = 0; s < seconds; s++, m->now++) {
        enum slow_news is;
        for (int i = 0; i < N; i++) {
            struct heal_work *w = &m->ranks[i].work;
            w->beats++;
            w->active += shares[i].active;
            w->ready += shares[i].ready;
            w->throttled += shares[i].throttled;
            w->blocked += shares[i].state == 'D';
            w->stopped += shares[i].state == 'T';
        }
        while ((is = slow_judge (m->slow, m->ranks, N, m->now, why, sizeof (why)))
               != SLOW_NOTHING) {
            memcpy (m->why, why, sizeof (why));
            news++;
            if (last)
                *last = is;
        }
    }
    return news;
}

static const struct share even[N] = {
    { 0.6, 0.1, 0, 'S' }, { 0.7, 0.2, 0, 'R' }, { 0.6, 0.1, 0, 'S' }, { 0.5, 0.1, 0, 'S' }
};
static const struct share limited[N] = {
    { 0.2, 0.05, 0, 'S' }, { 0.25, 0.05, 0, 'S' }, { 1, 0.85, 0.8, 'R' }, { 0.2, 0.05, 0, 'S' }
};

static void it_is_named_with_its_cause (void **state)
{
    static const struct {
        struct share slow;
        const char *why;
    } cases[] = {
        { { 1, 0.85, 0.8, 'R' },
          "the limit of its cgroup (cpu.max) throttles it 80 % of the time" },
        { { 0.9, 0.6, 0, 'R' },
          "other processes run on its cores: it waits for one 60 % of the time" },
        { { 0.1, 0, 0, 'T' }, "it is stopped (SIGSTOP) 100 % of the time" },
        { { 0.2, 0, 0, 'D' }, "it waits for storage 100 % of the time" },
    };
    enum slow_news last = SLOW_NOTHING;
    char wanted[256];
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        struct share shares[N];
        memcpy (shares, limited, sizeof (shares));
        shares[2] = cases[i].slow;
        begin (&m);
        assert_int_equal (go_on (&m, even, 120, NULL), 0);
        /* within a minute; storage within 80 s, because a save may wait for it, too */
        assert_int_equal (go_on (&m, shares, shares[2].state == 'D' ? 80 : 50, &last), 1);
        assert_int_equal (last, SLOW_FOUND);
        snprintf (wanted, sizeof (wanted), "rank 2 on n2 is slow, and the others wait for it: %s",
                  cases[i].why);
        assert_string_equal (m.why, wanted);
        assert_int_equal (go_on (&m, shares, 600, NULL), 0); /* it is reported only once */
        assert_int_equal (go_on (&m, even, 50, &last), 1);
        assert_int_equal (last, SLOW_OVER);
        assert_string_equal (m.why, "rank 2 on n2 is not slow any more");
        slow_destroy (m.slow);
    }
}

/* Healthy runs: rank 0 evaluates; all have too few cores; all save to slow storage; MPI ranks spin;
 * one rank has more work than the others.
 */
static void nobody_is_named_without_a_cause (void **state)
{
    static const struct share cases[][N] = {
        { { 1, 0.02, 0, 'R' }, { 0, 0, 0, 'S' }, { 0, 0, 0, 'S' }, { 0, 0, 0, 'S' } },
        { { 1, 0.6, 0, 'R' }, { 0.9, 0.4, 0, 'R' }, { 1, 0.5, 0, 'R' }, { 0.95, 0.5, 0, 'R' } },
        { { 0.1, 0, 0, 'D' }, { 0.1, 0, 0, 'D' }, { 0.1, 0, 0, 'D' }, { 0.1, 0, 0, 'D' } },
        { { 1, 0.3, 0.2, 'R' }, { 1, 0.1, 0, 'R' }, { 1, 0.1, 0, 'R' }, { 1, 0.1, 0, 'R' } },
        { { 0.9, 0.1, 0, 'R' }, { 0.4, 0.05, 0, 'S' }, { 0.4, 0.1, 0, 'S' }, { 0.4, 0, 0, 'S' } },
    };
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        begin (&m);
        assert_int_equal (go_on (&m, cases[i], 600, NULL), 0);
        slow_destroy (m.slow);
    }
}

/* Saves of less than a minute, and short slowdowns. */
static void what_passes_is_no_slowness (void **state)
{
    static const struct share saves[N] = {
        { 0.1, 0, 0, 'D' }, { 0, 0, 0, 'S' }, { 0, 0, 0, 'S' }, { 0, 0, 0, 'S' }
    };
    struct made m;

    begin (&m);
    for (int i = 0; i < 10; i++) {
        assert_int_equal (go_on (&m, even, 60, NULL), 0);
        assert_int_equal (go_on (&m, saves, 45, NULL), 0);
        assert_int_equal (go_on (&m, even, 60, NULL), 0);
        assert_int_equal (go_on (&m, limited, 15, NULL), 0);
    }
    slow_destroy (m.slow);
}

/* A rank that waits for a core is throttled, too: each cause is reported once. */
static void another_cause_is_named_too (void **state)
{
    struct share shares[N];
    struct made m;

    memcpy (shares, limited, sizeof (shares));
    begin (&m);
    for (int i = 0; i < 3; i++) {
        shares[2] = (struct share){ 0.9, 0.6, 0, 'R' };
        assert_int_equal (go_on (&m, shares, 50, NULL), i == 0);
        shares[2] = limited[2];
        assert_int_equal (go_on (&m, shares, 50, NULL), i == 0);
        assert_non_null (strstr (m.why, "rank 2 on n2 is slow, and the others wait for it: the "
                                        "limit of its cgroup"));
    }
    assert_int_equal (go_on (&m, even, 50, NULL), 1); /* SLOW_OVER */
    slow_destroy (m.slow);
}

/* If both ranks of a node are slow, each gets its own line. */
static void a_slow_node_has_all_of_its_ranks (void **state)
{
    struct share shares[N];
    struct made m;

    memcpy (shares, limited, sizeof (shares));
    shares[3] = shares[2];
    begin (&m);
    assert_int_equal (go_on (&m, shares, 60, NULL), 2);
    assert_non_null (strstr (m.why, "rank 3 on n2 is slow"));
    slow_destroy (m.slow);
}

/* Ranks that have ended, a single rank that is left, and ranks that send no heartbeats. */
static void who_is_not_heard_is_not_judged (void **state)
{
    struct made m;

    begin (&m);
    m.ranks[2].over = true;
    assert_int_equal (go_on (&m, limited, 100, NULL), 0);
    slow_destroy (m.slow);
    begin (&m);
    m.ranks[0].over = m.ranks[1].cut = m.ranks[3].lost = true;
    assert_int_equal (go_on (&m, limited, 100, NULL), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal (slow_judge (m.slow, m.ranks, N, m.now += WINDOW, m.why, sizeof (m.why)),
                          SLOW_NOTHING);
    slow_destroy (m.slow);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (it_is_named_with_its_cause),
        cmocka_unit_test (nobody_is_named_without_a_cause),
        cmocka_unit_test (what_passes_is_no_slowness),
        cmocka_unit_test (another_cause_is_named_too),
        cmocka_unit_test (a_slow_node_has_all_of_its_ranks),
        cmocka_unit_test (who_is_not_heard_is_not_judged),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
