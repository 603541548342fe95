/* SPDX-License-Identifier: Apache-2.0 */
/* Check how the slow rank is found from samples of how ranks spend their time, of their GPUs, and
 * of the network of their hosts.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/heal/heal.h"
#include "launcher/sys/nvml.h"
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
    const struct heal_gpu *gpus;         /* of each rank; NULL: none can be read */
    const struct heal_network *networks; /* what each rank reports every 5 s; NULL: nothing */
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
            if (m->gpus)
                slow_add_gpu (&m->ranks[i].gpu, &m->gpus[i]);
            if (m->networks && s % 5 == 0)
                slow_add_network (&m->ranks[i].network, &m->networks[i]);
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

CASE (it_is_named_with_its_cause)
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
        assert_string_equal (m.why, "rank 2 on n2 is no longer slow");
        slow_destroy (m.slow);
    }
}

/* Healthy runs: rank 0 evaluates; all have too few cores; all save to slow storage; MPI ranks spin;
 * one rank has more work than the others.
 */
CASE (no_rank_is_named_without_a_cause)
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
CASE (a_short_delay_is_not_slowness)
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
CASE (another_cause_is_named_too)
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
CASE (a_slow_node_is_named_with_all_its_ranks)
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
CASE (silent_ranks_are_not_judged)
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

/* ---- GPUs: while all ranks spin in NCCL ---- */

static const struct share spinning[N] = {
    { 1, 0.02, 0, 'R' }, { 1, 0.02, 0, 'R' }, { 1, 0.02, 0, 'R' }, { 1, 0.02, 0, 'R' }
};

/* a case replaces what differs from a healthy GPU */
#pragma GCC diagnostic ignored "-Woverride-init"
#define GPU(slowed_, clock_, ...)                                                                  \
    {                                                                                              \
        .known = 1, .index = 1, .slowed = (slowed_), .clock = (clock_), .clock_most = 1980,        \
        .power_limit = 700, .lanes = 16, .lanes_most = 16, .generation = 5, .generation_most = 5,  \
        __VA_ARGS__                                                                                \
    }
static const struct heal_gpu healthy = GPU (0, 1980);

/* Rank 3 has this GPU; the others have healthy ones. */
static int go_on_with_gpu (struct made *m, const struct heal_gpu *gpu, int seconds)
{
    struct heal_gpu gpus[N] = { healthy, healthy, healthy, *gpu };
    int news;

    m->gpus = gpus;
    news = go_on (m, spinning, seconds, NULL);
    m->gpus = NULL;
    return news;
}

CASE (a_slow_gpu_is_named_with_its_cause)
{
    static const struct {
        struct heal_gpu gpu;
        const char *why;
    } cases[] = {
        { GPU (NVML_HW_THERMAL | NVML_HW_SLOWDOWN, 705),
          "its GPU 1 runs at 705 MHz, those of the others at 1980 MHz: thermal slowdown by its "
          "hardware" },
        { GPU (NVML_SW_THERMAL, 1200),
          "its GPU 1 runs at 1200 MHz, those of the others at 1980 MHz: thermal slowdown by its "
          "driver" },
        { GPU (NVML_POWER_BRAKE | NVML_HW_SLOWDOWN, 345),
          "its GPU 1 runs at 345 MHz, those of the others at 1980 MHz: power brake" },
        { GPU (NVML_HW_SLOWDOWN, 345),
          "its GPU 1 runs at 345 MHz, those of the others at 1980 MHz: slowdown by its "
          "hardware" },
        { GPU (NVML_POWER_CAP, 1100, .power_limit = 350),
          "its GPU 1 runs at 1100 MHz, those of the others at 1980 MHz: its power limit is 350 W, "
          "theirs 700 W" },
        { GPU (NVML_SETTING, 990),
          "its GPU 1 runs at 990 MHz, those of the others at 1980 MHz: somebody has set a lower "
          "clock" },
        { GPU (0, 1980, .lanes = 4),
          "the PCIe link of its GPU 1 has 4 of 16 lanes, at generation 5 of 5: 25 % of the rate "
          "of the others" },
        { GPU (0, 1980, .generation = 3),
          "the PCIe link of its GPU 1 has 16 of 16 lanes, at generation 3 of 5: 25 % of the rate "
          "of the others" },
        { GPU (0, 1980, .others = 0.4, .other_process = 4711),
          "another program (pid 4711) uses its GPU 1 40 % of the time" },
    };
    char wanted[256];
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        begin (&m);
        assert_int_equal (go_on_with_gpu (&m, &healthy, 120), 0);
        assert_int_equal (go_on_with_gpu (&m, &cases[i].gpu, 50), 1);
        snprintf (wanted, sizeof (wanted), "rank 3 on n2 is slow: %s", cases[i].why);
        assert_string_equal (m.why, wanted);
        assert_int_equal (go_on_with_gpu (&m, &cases[i].gpu, 600), 0);
        assert_int_equal (go_on_with_gpu (&m, &healthy, 50), 1);
        assert_string_equal (m.why, "rank 3 on n2 is no longer slow");
        slow_destroy (m.slow);
    }
}

/* What rank 3's GPU may do, while those of the others are healthy. */
CASE (a_gpu_that_is_not_the_cause_is_not_named)
{
    static const struct heal_gpu cases[] = {
        GPU (NVML_IDLE, 345, .generation = 1),                /* its rank loads data */
        GPU (NVML_IDLE | NVML_HW_SLOWDOWN, 345, .lanes = 8),  /* the same */
        GPU (0, 345),                                         /* no reason is given */
        GPU (0x10, 705),                                      /* it follows a slower GPU */
        GPU (NVML_POWER_CAP, 1300),                           /* it evaluates, and draws 700 W */
        GPU (NVML_POWER_CAP, 1300, .power_limit = 0),         /* its limit cannot be read */
        GPU (NVML_SW_THERMAL, 1755),                          /* hardly slower */
        GPU (0, 1980, .lanes = 8, .lanes_most = 8),           /* its slot has no more */
        GPU (0, 1980, .others = 0.05, .other_process = 4711), /* a desktop */
        GPU (NVML_HW_THERMAL, 0, .clock_most = 0),            /* its clock cannot be read */
        GPU (NVML_IDLE, 705, .lanes = 0, .generation = 0),    /* nor the reasons, nor the link */
    };
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        begin (&m);
        assert_int_equal (go_on_with_gpu (&m, &healthy, 60), 0);
        assert_int_equal (go_on_with_gpu (&m, &cases[i], 300), 0);
        slow_destroy (m.slow);
    }
}

/* Nothing sets a rank apart: all GPUs are capped, hot or shared; the slow GPU is the only one that
 * can be read; another model has a lower clock.
 */
CASE (gpus_that_are_alike_are_not_named)
{
    static const struct heal_gpu cases[][N] = {
        { GPU (NVML_POWER_CAP, 1200), GPU (NVML_POWER_CAP, 1300), GPU (NVML_POWER_CAP, 1250),
          GPU (NVML_POWER_CAP, 1150, .power_limit = 690) },
        { GPU (NVML_SW_THERMAL, 900), GPU (NVML_SW_THERMAL, 950), GPU (NVML_HW_THERMAL, 800),
          GPU (NVML_SW_THERMAL, 900) },
        { GPU (0, 1980, .others = 0.5), GPU (0, 1980, .others = 0.45), GPU (0, 1980, .others = 0.5),
          GPU (0, 1980, .others = 0.4) },
        { { 0 }, { 0 }, { 0 }, GPU (NVML_HW_THERMAL, 345, .lanes = 1, .others = 0.9) },
        { GPU (0, 1980), GPU (0, 1980), GPU (0, 1980),
          GPU (NVML_POWER_CAP, 1300, .clock_most = 1410, .power_limit = 300) },
    };
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        begin (&m);
        m.gpus = cases[i];
        assert_int_equal (go_on (&m, spinning, 300, NULL), 0);
        slow_destroy (m.slow);
    }
}

/* One of the others cannot be read, and one is idle: their clocks do not count. */
CASE (the_other_ranks_may_be_incomplete)
{
    static const struct heal_gpu gpus[N] = {
        { 0 }, GPU (NVML_IDLE, 345), GPU (0, 1980), GPU (NVML_HW_THERMAL, 345)
    };
    struct made m;

    begin (&m);
    m.gpus = gpus;
    assert_int_equal (go_on (&m, spinning, 50, NULL), 1);
    assert_non_null (strstr (m.why, "rank 3 on n2 is slow: its GPU 1 runs at 345 MHz"));
    slow_destroy (m.slow);
}

/* Two windows are too short. */
CASE (a_short_slowdown_of_a_gpu_is_not_named)
{
    static const struct heal_gpu hot = GPU (NVML_SW_THERMAL, 705);
    struct made m;

    begin (&m);
    for (int i = 0; i < 20; i++) {
        assert_int_equal (go_on_with_gpu (&m, &hot, 15), 0);
        assert_int_equal (go_on_with_gpu (&m, &healthy, 20), 0);
    }
    slow_destroy (m.slow);
}

/* A GPU that gets slow for one reason, and then for another. */
CASE (another_gpu_cause_is_named_too)
{
    static const struct heal_gpu hot = GPU (NVML_SW_THERMAL, 705);
    static const struct heal_gpu shared = GPU (NVML_SW_THERMAL, 705, .others = 0.4);
    struct made m;

    begin (&m);
    assert_int_equal (go_on_with_gpu (&m, &hot, 100), 1);
    assert_int_equal (go_on_with_gpu (&m, &shared, 100), 1);
    assert_non_null (strstr (m.why, "another program"));
    slow_destroy (m.slow);
}

/* ---- the network: rank 0 reports on n1, 2 on n2, and 3, here, on n3 ---- */

#define LINK(name_, speed_, bytes_, ...)                                                           \
    {                                                                                              \
        .name = (name_), .speed = (speed_), .bytes = (bytes_), .packets = 1e5, .faults = {         \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define NETWORK(segments_, resent_, ...)                                                           \
    {                                                                                              \
        .seconds = 5, .segments = (segments_), .resent = (resent_), .nlinks = 2, .links = {        \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
/* eth0 with 25 Gbit/s, and a port with 400 Gbit/s */
#define ETH0(...) LINK ("eth0", 3.125e9, 1e9, __VA_ARGS__)
#define PORT(...) LINK ("mlx5_0/1", 50e9, 100e9, __VA_ARGS__)
static const struct heal_network good = NETWORK (1e5, 0, ETH0 (0), PORT (0));

static void begin_on_hosts (struct made *m)
{
    static const char *const hosts[N] = { "n1", "n1", "n2", "n3" };

    begin (m);
    for (int i = 0; i < N; i++)
        m->ranks[i].host = hosts[i];
}

static int go_on_with_networks (struct made *m, struct heal_network n1, struct heal_network n2,
                                struct heal_network n3, int seconds)
{
    const struct heal_network networks[N] = { n1, { 0 }, n2, n3 };
    int news;

    m->networks = networks;
    news = go_on (m, spinning, seconds, NULL);
    m->networks = NULL;
    return news;
}

CASE (a_bad_link_is_named)
{
    static const struct {
        struct heal_network network;
        const char *why;
    } cases[] = {
        { NETWORK (1e5, 6200, ETH0 (0), PORT (0)),
          "n3 sends 6 % of its TCP segments again, the other hosts none" },
        { NETWORK (1e5, 0, ETH0 ([FAULT_ERRORS] = 600), PORT (0)),
          "link eth0 of n3 had 1200 errors in 10 s, that of the other hosts 0" },
        { NETWORK (1e5, 0, ETH0 ([FAULT_DROPS] = 2000), PORT (0)),
          "link eth0 of n3 had 4000 dropped packets in 10 s, that of the other hosts 0" },
        { NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_SYMBOLS] = 40)),
          "link mlx5_0/1 of n3 had 80 symbol errors in 10 s, that of the other hosts 0" },
        { NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_DOWN] = 1)),
          "link mlx5_0/1 of n3 had 2 losses of the link in 10 s, that of the other hosts 0" },
        { NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_INTEGRITY] = 9)),
          "link mlx5_0/1 of n3 had 18 link integrity errors in 10 s, that of the other hosts 0" },
        { NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_DISCARDS] = 90)),
          "link mlx5_0/1 of n3 had 180 discarded packets in 10 s, that of the other hosts 0" },
        { NETWORK (1e5, 0, LINK ("eth0", 0.125e9, 0.5e9, 0), PORT (0)),
          "link eth0 of n3 runs at 1 Gbit/s, that of the other hosts at 25 Gbit/s, and it is 80 % "
          "busy" },
        { NETWORK (1e5, 0, ETH0 (0), LINK ("mlx5_0/1", 12.5e9, 60e9, 0)),
          "link mlx5_0/1 of n3 runs at 100 Gbit/s, that of the other hosts at 400 Gbit/s, and it "
          "is 96 % busy" },
    };
    char wanted[256];
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        begin_on_hosts (&m);
        assert_int_equal (go_on_with_networks (&m, good, good, good, 120), 0);
        assert_int_equal (go_on_with_networks (&m, good, good, cases[i].network, 50), 1);
        snprintf (wanted, sizeof (wanted), "rank 3 on n3 is slow: %s", cases[i].why);
        assert_string_equal (m.why, wanted);
        assert_int_equal (go_on_with_networks (&m, good, good, cases[i].network, 600), 0);
        assert_int_equal (go_on_with_networks (&m, good, good, good, 50), 1);
        assert_string_equal (m.why, "rank 3 on n3 is no longer slow");
        slow_destroy (m.slow);
    }
}

CASE (a_bad_link_is_one_line_for_its_host)
{
    static const struct heal_network bad = NETWORK (1e5, 5000, ETH0 (0), PORT (0));
    struct made m;

    begin_on_hosts (&m);
    assert_int_equal (go_on_with_networks (&m, bad, good, good, 600), 1);
    assert_string_equal (m.why, "the 2 ranks on n1 are slow: n1 sends 5 % of its TCP segments "
                                "again, the other hosts none");
    assert_int_equal (go_on_with_networks (&m, good, good, good, 50), 1);
    assert_string_equal (m.why, "the 2 ranks on n1 are no longer slow");
    slow_destroy (m.slow);
}

/* Rank 0's host sends to n3, whose link loses segments both ways. */
CASE (only_the_host_that_loses_both_ways_is_named)
{
    struct heal_network before = NETWORK (1e5, 5000, ETH0 (0), PORT (0));
    struct heal_network bad = NETWORK (1e5, 6000, ETH0 (0), PORT (0));
    struct heal_network after = good;
    struct made m;

    before.received = bad.received = after.received = 1e5;
    bad.gaps = 20000;
    after.gaps = 30000;
    begin_on_hosts (&m);
    assert_int_equal (go_on_with_networks (&m, before, after, bad, 300), 1);
    assert_string_equal (m.why, "rank 3 on n3 is slow: n3 sends 6 % of its TCP segments again, the "
                                "other hosts none");
    slow_destroy (m.slow);
}

/* What a healthy network does, or one that is bad everywhere. */
CASE (a_good_network_is_not_named)
{
    static const struct heal_network cases[][3] = {
        /* a few losses; most segments of a host that sends hardly any */
        { NETWORK (1e5, 500, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        { NETWORK (20, 9, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        /* congestion */
        { NETWORK (1e5, 4000, ETH0 (0), PORT (0)), NETWORK (1e5, 5000, ETH0 (0), PORT (0)),
          NETWORK (1e5, 3000, ETH0 (0), PORT (0)) },
        { NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_DISCARDS] = 90)),
          NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_DISCARDS] = 100)),
          NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_DISCARDS] = 80)) },
        /* frames of an unknown protocol, of which a quiet link has no others */
        { NETWORK (1e5, 0, ETH0 ([FAULT_DROPS] = 10), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        /* a bit error now and then; a few in many packets */
        { NETWORK (1e5, 0, ETH0 (0), PORT ([FAULT_SYMBOLS] = 2)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        { NETWORK (1e5, 0, ETH0 ([FAULT_ERRORS] = 50), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        /* a slower link that hardly anybody uses; one of an unknown speed */
        { NETWORK (1e5, 0, LINK ("eth0", 0.125e9, 0.1e9, 0), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        { NETWORK (1e5, 0, LINK ("eth0", 0, 9e9, 0), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        /* the others have no link of this name */
        { NETWORK (1e5, 0, LINK ("eth1", 0.125e9, 0.6e9, [FAULT_ERRORS] = 9000), PORT (0)),
          NETWORK (1e5, 0, ETH0 (0), PORT (0)), NETWORK (1e5, 0, ETH0 (0), PORT (0)) },
        /* nothing is known of the others */
        { NETWORK (1e5, 9000, ETH0 ([FAULT_ERRORS] = 9000), PORT (0)), { 0 }, { 0 } },
    };
    struct made m;

    for (size_t i = 0; i < COUNT (cases); i++) {
        begin_on_hosts (&m);
        assert_int_equal (go_on_with_networks (&m, cases[i][1], cases[i][2], cases[i][0], 300), 0);
        slow_destroy (m.slow);
    }
}

/* A burst of losses is over before three windows. */
CASE (a_burst_of_losses_is_not_named)
{
    static const struct heal_network bad = NETWORK (1e5, 9000, ETH0 (0), PORT (0));
    struct made m;

    begin_on_hosts (&m);
    for (int i = 0; i < 20; i++) {
        assert_int_equal (go_on_with_networks (&m, good, good, bad, 15), 0);
        assert_int_equal (go_on_with_networks (&m, good, good, good, 25), 0);
    }
    slow_destroy (m.slow);
}

/* ---- what is read ---- */

static char network_dir[] = "/tmp/dl-network.XXXXXX";

/* A copy of /proc and /sys. */
static void put_network (const char *eth0, const char *tcp, const char *symbols)
{
    char cmd[4096];

    snprintf (cmd, sizeof (cmd),
              "cd %s && p=sys/class/infiniband/mlx5_0/ports/1 && "
              "mkdir -p proc/self/net sys/class/net/eth0 $p/counters && "
              "printf 'Inter-|   Receive |  Transmit\n face |bytes packets\n"
              "    lo:  99 1 7 7 0 0 0 0 99 1 7 7 0 0 0 0\n  eth0: %s\n' >proc/self/net/dev && "
              "echo 25000 >sys/class/net/eth0/speed && "
              "printf 'Ip: Forwarding\nIp: 1\nTcp: RtoMin InSegs OutSegs RetransSegs InErrs\n"
              "Tcp: %s\nUdp: OutSegs\nUdp: 4\n' >proc/self/net/snmp && "
              "printf 'TcpExt: Pruned TCPOFOQueue\nTcpExt: 3 70\n' >proc/self/net/netstat && "
              "echo '400 Gb/sec (4X NDR)' >$p/rate && echo 2500 >$p/counters/port_rcv_data && "
              "echo 1000 >$p/counters/port_xmit_data && echo %s >$p/counters/symbol_error && "
              "echo 1 >$p/counters/link_downed",
              network_dir, eth0, tcp, symbols);
    assert_int_equal (system (cmd), 0);
}

static void read_network (bool faults, struct network_readings *r)
{
    char path[64];
    int proc, sys;

    snprintf (path, sizeof (path), "%s/proc", network_dir);
    proc = open (path, O_RDONLY | O_DIRECTORY);
    snprintf (path, sizeof (path), "%s/sys", network_dir);
    sys = open (path, O_RDONLY | O_DIRECTORY);
    network_read (proc, sys, faults, r);
    close (proc);
    close (sys);
}

CASE (the_network_is_read)
{
    struct network_readings r;
    char cmd[64];

    assert_non_null (mkdtemp (network_dir));
    put_network ("5000 40 3 4 0 0 0 0 6000 50 1 2 0 0 0 0", "200 900 1000 60 0", "12");
    read_network (true, &r);
    assert_int_equal (r.n, 2);
    assert_string_equal (r.links[0].name, "eth0");
    assert_true (!r.links[0].is_port && r.links[0].speed == 3.125e9);
    assert_true (r.links[0].received == 5000 && r.links[0].sent == 6000);
    assert_true (r.links[0].packets == 90 && r.links[0].faults[FAULT_ERRORS] == 4
                 && r.links[0].faults[FAULT_DROPS] == 6);
    assert_true (isnan (r.links[0].faults[FAULT_SYMBOLS]));
    assert_string_equal (r.links[1].name, "mlx5_0/1");
    assert_true (r.links[1].is_port && r.links[1].speed == 50e9);
    assert_true (r.links[1].received == 10000 && r.links[1].sent == 4000);
    assert_true (r.links[1].faults[FAULT_SYMBOLS] == 12 && r.links[1].faults[FAULT_DOWN] == 1);
    assert_true (isnan (r.links[1].faults[FAULT_DISCARDS]) && isnan (r.links[1].packets));
    assert_true (r.segments == 1000 && r.resent == 60 && r.received == 900 && r.gaps == 70);
    read_network (false, &r);
    assert_int_equal (r.n, 2);
    assert_true (isnan (r.links[1].faults[FAULT_SYMBOLS]));
    snprintf (cmd, sizeof (cmd), "rm -r %s/*", network_dir);
    assert_int_equal (system (cmd), 0);
    read_network (true, &r); /* nothing is there */
    assert_int_equal (r.n, 0);
    assert_true (isnan (r.segments) && isnan (r.resent) && isnan (r.gaps));
    assert_int_equal (rmdir (network_dir), 0);
}

RUN_CASES ()
