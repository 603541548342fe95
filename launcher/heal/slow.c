/* SPDX-License-Identifier: Apache-2.0 */
/* Find a slow rank, from how each spends its time, and from its hardware.  Pure. */
#include "launcher/heal/heal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/nvml.h"
#include "runtime/base/array.h"

/* If a rank's processor is slow, the others sleep while they wait for it: how each spends its time
 * shows which one they wait for.
 *
 * If its GPU is slow, nothing of the kind does.  Ranks that wait in NCCL keep their cores and the
 * SMs of their GPUs busy.  They draw less power than a GPU that computes, but so does one that runs
 * at a low clock.  Therefore hardware is judged by what slows it down: the driver states the reason
 * for a low clock, and the other ranks show which clock is normal, as all of them should have the
 * same.  A GPU that has more work than the others shows no such reason, or only that it reached the
 * same power limit as theirs.
 *
 * If a link is bad, all ranks wait in the same collectives, on both of its sides.  What the hosts
 * count sets the bad one apart: it sends segments again, or counts errors on a link, and the others
 * do not.  Congestion is different, as it has several hosts send again.  How long a step takes is
 * not known here: a program may print every thousandth.  So the shares are those that make TCP or a
 * link slow, not merely imperfect, and a link with less speed than that of the same name on the
 * other hosts is a cause only while it is busy.
 *
 * The segments that a host sends again were lost on their way out of it: on its link, or on that of
 * the host to which it sends.  If that link loses segments both ways, its host sends again, too,
 * and misses segments that it should receive: it is the one to name.
 */

enum {
    WINDOW_SECONDS = 10,
    BEATS_LEAST = 5,  /* heartbeats in a window; a rank sends one a second */
    WINDOWS_WELL = 3, /* in a row, until a rank is no longer slow */
};

/* Shares of the time. */
static const double busy_least = 0.5, others_most = 0.75, busy_more = 0.25, lost_more = 0.15;
static const double reason_least = 0.5, narrow_least = 0.9;

/* Compared with the other ranks' GPUs.  Equal GPUs at an equal limit differ by up to a tenth. */
static const double clock_most = 0.8, limit_most = 0.9, link_most = 0.5;

/* Of TCP segments, and compared with the other hosts.  A loss of 1 % cuts the throughput of TCP to
 * a fraction.
 */
static const double resent_share = 0.01, resent_least = 20, others_resent_most = 0.2;
/* Of the speed of a link, and compared with the other hosts'. */
static const double link_busy_least = 0.25, link_speed_most = 0.5, others_faults_most = 0.1;

enum slow_cause {
    SLOW_STOPPED,
    SLOW_THROTTLED,
    SLOW_CROWDED,
    SLOW_STORAGE,
    SLOW_WAITS, /* those above make the others wait in sleep */
    SLOW_GPU_CLOCK = SLOW_WAITS,
    SLOW_GPU_LINK,
    SLOW_GPU_SHARED,
    SLOW_OF_HOST, /* those that follow are of a host, and counted for the rank that reports on it */
    SLOW_RESENT = SLOW_OF_HOST,
    SLOW_FAULTS,
    SLOW_LINK,
    SLOW_CAUSES
};

/* What is compared between ranks, for each window.  The first are the shares of the time lost to
 * the causes of the same number.
 */
enum measure {
    BUSY = SLOW_WAITS, /* share of the time in which it did not wait for other ranks */
    CLOCK,             /* MHz */
    CLOCK_SHARE,       /* of the highest one */
    POWER_LIMIT,
    LINK, /* of a GPU, in lanes of generation 1 */
    OTHERS_ON_GPU,
    RESENT, /* share of TCP segments */
    GAPS,   /* share of those received that came after a missing one */
    MEASURES
};

/* What a rank did in a window.  NaN: not known. */
struct slow_window {
    double v[MEASURES];
    double narrow; /* share of the time in which its link was not what it could be */
    double slowed[HEAL_CLOCK_REASONS];
    struct heal_gpu gpu;
    struct heal_network network;
    const char *host;
};

struct slow_rank {
    struct heal_work before; /* at the end of the last window */
    struct heal_gpu_work gpu_before;
    struct heal_network network_before;
    int windows[SLOW_CAUSES]; /* in a row in which it was slow for this cause */
    int well;                 /* windows in a row in which it was not slow */
    unsigned told;            /* causes for which it has been named since it became slow */
};

struct slow_ranks {
    size_t n;
    double end; /* of the last window; 0: none has ended */
    struct slow_rank *ranks;
    struct slow_window *windows;
    double *others;
    size_t next; /* rank to report on next; n: none */
};

void slow_add_gpu (struct heal_gpu_work *w, const struct heal_gpu *g)
{
    bool is_idle = g->slowed & NVML_IDLE; /* it lowers its clock, and its link, on purpose */
    int64_t other = g->others > 0 ? g->other_process : w->last.other_process;

    if (!g->known)
        return;
    w->readings++;
    w->clock += g->clock;
    for (int i = 0; i < HEAL_CLOCK_REASONS; i++)
        w->slowed[i] += (is_idle ? NVML_IDLE : g->slowed) >> i & 1;
    w->narrow += !is_idle && (g->lanes < g->lanes_most || g->generation < g->generation_most);
    w->others += g->others;
    w->last = *g;
    w->last.other_process = other;
}

static const struct heal_link *link_named (const struct heal_network *w, const char *name)
{
    for (int64_t i = 0; i < w->nlinks; i++)
        if (!strcmp (w->links[i].name, name))
            return &w->links[i];
    return NULL;
}

/* Add the link if it is new.  Returns NULL if there is no room. */
static struct heal_link *link_of (struct heal_network *sum, const char *name)
{
    const struct heal_link *there = link_named (sum, name);
    struct heal_link *l = there ? &sum->links[there - sum->links] : NULL;

    if (l || sum->nlinks == HEAL_LINKS)
        return l;
    l = &sum->links[sum->nlinks++];
    *l = (struct heal_link){ 0 };
    snprintf (l->name, sizeof (l->name), "%s", name);
    return l;
}

/* 'sign' is 1 or -1. */
static void add_network (struct heal_network *sum, const struct heal_network *w, double sign)
{
    sum->seconds += sign * w->seconds;
    sum->segments += sign * w->segments;
    sum->resent += sign * w->resent;
    sum->received += sign * w->received;
    sum->gaps += sign * w->gaps;
    for (int64_t i = 0; i < w->nlinks; i++) {
        const struct heal_link *from = &w->links[i];
        struct heal_link *l = link_of (sum, from->name);
        if (!l)
            continue;
        if (sign > 0)
            l->speed = from->speed;
        l->bytes += sign * from->bytes;
        l->packets += sign * from->packets;
        for (int f = 0; f < NETWORK_FAULTS; f++)
            l->faults[f] += sign * from->faults[f];
    }
}

void slow_add_network (struct heal_network *sum, const struct heal_network *report)
{
    add_network (sum, report, 1);
}

struct slow_ranks *slow_create (size_t n)
{
    struct slow_ranks *s = xcalloc (1, sizeof (*s));

    s->n = s->next = n;
    s->ranks = xcalloc (n + 1, sizeof (*s->ranks));
    s->windows = xcalloc (n + 1, sizeof (*s->windows));
    s->others = xcalloc (n + 1, sizeof (*s->others));
    return s;
}

void slow_destroy (struct slow_ranks *s)
{
    if (!s)
        return;
    free (s->ranks);
    free (s->windows);
    free (s->others);
    free (s);
}

static const char *host_of (const struct heal_seen *seen)
{
    return seen->host ? seen->host : "?";
}

/* ---- a window ---- */

static double at_most_all (double share)
{
    return share < 1 ? share : 1;
}

static void measure_time (const struct heal_work *was, const struct heal_work *now,
                          struct slow_window *w)
{
    double beats = now->beats - was->beats;
    double ready = (now->ready - was->ready) / beats;
    double *v = w->v;

    v[SLOW_STOPPED] = (now->stopped - was->stopped) / beats;
    v[SLOW_STORAGE] = (now->blocked - was->blocked) / beats;
    v[SLOW_THROTTLED] = (now->throttled - was->throttled) / beats;
    v[BUSY] = at_most_all ((now->active - was->active) / beats + v[SLOW_STOPPED] + v[SLOW_STORAGE]);
    /* the kernel counts throttled threads as ready, too */
    v[SLOW_CROWDED] = v[SLOW_THROTTLED] < ready / 2 ? ready - v[SLOW_THROTTLED] : 0;
}

static double share_of_reason (const struct slow_window *w, int64_t bit)
{
    for (int i = 0; i < HEAL_CLOCK_REASONS; i++)
        if (bit == INT64_C (1) << i)
            return w->slowed[i];
    return 0;
}

static void measure_gpu (const struct heal_gpu_work *was, const struct heal_gpu_work *now,
                         struct slow_window *w)
{
    const struct heal_gpu *g = &now->last;
    double readings = now->readings - was->readings;
    double *v = w->v;

    w->gpu = *g;
    w->narrow = (now->narrow - was->narrow) / readings;
    for (int i = 0; i < HEAL_CLOCK_REASONS; i++)
        w->slowed[i] = (now->slowed[i] - was->slowed[i]) / readings;
    v[OTHERS_ON_GPU] = (now->others - was->others) / readings;
    if (g->clock_most > 0 && share_of_reason (w, NVML_IDLE) < reason_least) {
        v[CLOCK] = (now->clock - was->clock) / readings;
        v[CLOCK_SHARE] = v[CLOCK] / g->clock_most;
    }
    if (g->power_limit > 0)
        v[POWER_LIMIT] = g->power_limit;
    if (g->lanes > 0 && g->generation > 0) /* each generation doubles the rate of a lane */
        v[LINK] = ldexp ((double)g->lanes, (int)g->generation - 1);
}

static void measure_network (const struct heal_network *was, const struct heal_network *now,
                             struct slow_window *w)
{
    w->network = *now;
    add_network (&w->network, was, -1);
    if (w->network.segments > 0)
        w->v[RESENT] = w->network.resent / w->network.segments;
    if (w->network.received > 0)
        w->v[GAPS] = w->network.gaps / w->network.received;
}

static struct slow_window measure_window (struct slow_rank *r, const struct heal_seen *seen)
{
    struct slow_window w = { .host = host_of (seen) };

    for (int i = 0; i < MEASURES; i++)
        w.v[i] = NAN;
    if (heal_lives (seen) && seen->work.beats - r->before.beats >= BEATS_LEAST)
        measure_time (&r->before, &seen->work, &w);
    if (heal_lives (seen) && seen->gpu.readings - r->gpu_before.readings >= BEATS_LEAST)
        measure_gpu (&r->gpu_before, &seen->gpu, &w);
    if (heal_lives (seen) && seen->network.seconds > r->network_before.seconds)
        measure_network (&r->network_before, &seen->network, &w);
    r->before = seen->work;
    r->network_before = seen->network;
    r->gpu_before = seen->gpu;
    return w;
}

/* The median; of two, the lower one.  NaN if there are none. */
static double middle (double *list, size_t n)
{
    if (n == 0)
        return NAN;
    qsort (list, n, sizeof (*list), compare_doubles);
    return list[(n - 1) / 2];
}

/* The median of the other ranks of which it is known. */
static double others_of (struct slow_ranks *s, size_t rank, int measure)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (i != rank && !isnan (s->windows[i].v[measure]))
            s->others[n++] = s->windows[i].v[measure];
    return middle (s->others, n);
}

/* ---- causes: nothing that is not known is one, as no comparison with NaN holds ---- */

/* The others wait in sleep, and it lost time to this cause, more than the others, and most. */
static bool others_wait (struct slow_ranks *s, size_t rank, int cause)
{
    const double *v = s->windows[rank].v;
    double others = others_of (s, rank, BUSY);

    if (!(v[BUSY] >= busy_least && others <= others_most && v[BUSY] - others >= busy_more
          && v[cause] - others_of (s, rank, cause) >= lost_more))
        return false;
    for (int c = 0; c < SLOW_WAITS; c++)
        if ((v[c] > v[cause] || (c < cause && v[c] >= v[cause]))
            && v[c] - others_of (s, rank, c) >= lost_more)
            return false;
    return true;
}

/* Reasons for a low clock, the more specific one first.  NVML's other reasons slow down no rank: a
 * GPU is idle, or it follows the clock of another one.
 */
static const struct clock_reason {
    int64_t bit;
    const char *text;
} clock_reasons[] = {
    { NVML_HW_THERMAL, "thermal slowdown by its hardware" },
    { NVML_SW_THERMAL, "thermal slowdown by its driver" },
    { NVML_POWER_BRAKE, "power brake" },
    { NVML_HW_SLOWDOWN, "slowdown by its hardware" },
    { NVML_POWER_CAP, NULL }, /* a lower power limit than the others */
    { NVML_SETTING, "somebody has set a lower clock" },
};
enum { CLOCK_REASONS = sizeof (clock_reasons) / sizeof (*clock_reasons) };

/* A rank that evaluates while the others wait draws more power than they, and its GPU lowers the
 * clock at the limit that all have.  Only a lower limit is a cause.
 */
static const struct clock_reason *reason_of (struct slow_ranks *s, size_t rank)
{
    const struct slow_window *w = &s->windows[rank];

    for (int i = 0; i < CLOCK_REASONS; i++)
        if (share_of_reason (w, clock_reasons[i].bit) >= reason_least
            && (clock_reasons[i].text
                || w->v[POWER_LIMIT] <= limit_most * others_of (s, rank, POWER_LIMIT)))
            return &clock_reasons[i];
    return NULL;
}

static bool clock_is_low (struct slow_ranks *s, size_t rank, int cause)
{
    (void)cause;
    return s->windows[rank].v[CLOCK_SHARE] <= clock_most * others_of (s, rank, CLOCK_SHARE)
           && reason_of (s, rank);
}

/* A slot may have fewer lanes than another by design, and an idle GPU lowers the generation. */
static bool link_is_narrow (struct slow_ranks *s, size_t rank, int cause)
{
    const struct slow_window *w = &s->windows[rank];

    (void)cause;
    return w->narrow >= narrow_least && w->v[LINK] <= link_most * others_of (s, rank, LINK);
}

/* A program that holds memory but does nothing is not counted. */
static bool gpu_is_shared (struct slow_ranks *s, size_t rank, int cause)
{
    (void)cause;
    return s->windows[rank].v[OTHERS_ON_GPU] - others_of (s, rank, OTHERS_ON_GPU) >= lost_more;
}

static bool loses_both_ways (const struct slow_window *w)
{
    return w->v[RESENT] >= resent_share && w->v[GAPS] >= resent_share;
}

static bool sends_to_bad_link (const struct slow_ranks *s, size_t rank)
{
    if (loses_both_ways (&s->windows[rank]))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (loses_both_ways (&s->windows[i]))
            return true;
    return false;
}

static bool resends (struct slow_ranks *s, size_t rank, int cause)
{
    const struct slow_window *w = &s->windows[rank];

    (void)cause;
    return w->network.resent >= resent_least && w->v[RESENT] >= resent_share
           && others_of (s, rank, RESENT) <= others_resent_most * w->v[RESENT]
           && !sends_to_bad_link (s, rank);
}

/* The median of the links with this name of the other hosts; fault -1: of their speed. */
static double other_links (struct slow_ranks *s, size_t rank, const char *name, int fault)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        const struct heal_link *l = link_named (&s->windows[i].network, name);
        if (i != rank && l && (fault >= 0 || l->speed > 0))
            s->others[n++] = fault >= 0 ? l->faults[fault] : l->speed;
    }
    return middle (s->others, n);
}

/* How much a healthy link may have in a window.  Frames of a protocol that nobody listens to are
 * dropped a few times a second, and a congested fabric discards packets.
 */
static const struct fault_row {
    double least;
    double share; /* and at least this share of its packets, if they are counted */
    const char *text;
} fault_rows[NETWORK_FAULTS] = {
    [FAULT_ERRORS] = { 20, 0.001, "errors" },
    [FAULT_DROPS] = { 100, 0.01, "dropped packets" },
    [FAULT_SYMBOLS] = { 10, 0, "symbol errors" },
    [FAULT_DOWN] = { 1, 0, "losses of the link" },
    [FAULT_INTEGRITY] = { 10, 0, "link integrity errors" },
    [FAULT_DISCARDS] = { 100, 0, "discarded packets" },
};

/* Returns the link, and the kind of its fault in 'fault'; NULL: no link has one. */
static const struct heal_link *faulty_link (struct slow_ranks *s, size_t rank, int *fault)
{
    const struct heal_network *w = &s->windows[rank].network;

    for (int64_t i = 0; i < w->nlinks; i++)
        for (*fault = 0; *fault < NETWORK_FAULTS; ++*fault) {
            const struct heal_link *l = &w->links[i];
            double faults = l->faults[*fault];
            if (faults >= fault_rows[*fault].least
                && faults >= fault_rows[*fault].share * l->packets
                && other_links (s, rank, l->name, *fault) <= others_faults_most * faults)
                return l;
        }
    return NULL;
}

static bool has_faults (struct slow_ranks *s, size_t rank, int cause)
{
    int fault;

    (void)cause;
    return faulty_link (s, rank, &fault) != NULL;
}

static const struct heal_link *slower_link (struct slow_ranks *s, size_t rank)
{
    const struct heal_network *w = &s->windows[rank].network;

    for (int64_t i = 0; i < w->nlinks; i++) {
        const struct heal_link *l = &w->links[i];
        if (l->speed > 0 && l->bytes >= link_busy_least * l->speed * w->seconds
            && l->speed <= link_speed_most * other_links (s, rank, l->name, -1))
            return l;
    }
    return NULL;
}

static bool link_is_slow (struct slow_ranks *s, size_t rank, int cause)
{
    (void)cause;
    return slower_link (s, rank) != NULL;
}

/* ---- describe a slow rank ---- */

static void describe_clock (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    const struct slow_window *w = &s->windows[rank];
    const struct clock_reason *reason = reason_of (s, rank);
    int n = snprintf (text, size, "its GPU %d runs at %.0f MHz, those of the others at %.0f MHz: ",
                      (int)w->gpu.index, w->v[CLOCK], others_of (s, rank, CLOCK));

    if (reason->text)
        snprintf (text + n, size - (size_t)n, "%s", reason->text);
    else
        snprintf (text + n, size - (size_t)n, "its power limit is %.0f W, theirs %.0f W",
                  w->v[POWER_LIMIT], others_of (s, rank, POWER_LIMIT));
}

static void describe_gpu_link (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    const struct heal_gpu *g = &s->windows[rank].gpu;

    snprintf (text, size,
              "the PCIe link of its GPU %d has %d of %d lanes, at generation %d of %d: "
              "%.0f %% of the rate of the others",
              (int)g->index, (int)g->lanes, (int)g->lanes_most, (int)g->generation,
              (int)g->generation_most, 100 * s->windows[rank].v[LINK] / others_of (s, rank, LINK));
}

static void describe_shared_gpu (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    const struct slow_window *w = &s->windows[rank];

    snprintf (text, size, "another program (pid %d) uses its GPU %d %.0f %% of the time",
              (int)w->gpu.other_process, (int)w->gpu.index, 100 * w->v[OTHERS_ON_GPU]);
}

static void describe_resent (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    double others = others_of (s, rank, RESENT);
    int n = snprintf (text, size, "%s sends %.0f %% of its TCP segments again, the other hosts ",
                      s->windows[rank].host, 100 * s->windows[rank].v[RESENT]);

    if (others < 0.0005)
        snprintf (text + n, size - (size_t)n, "none");
    else
        snprintf (text + n, size - (size_t)n, "%.1f %%", 100 * others);
}

static void describe_faults (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    int fault;
    const struct heal_link *l = faulty_link (s, rank, &fault);

    snprintf (text, size, "link %s of %s had %.0f %s in %.0f s, that of the other hosts %.0f",
              l->name, s->windows[rank].host, l->faults[fault], fault_rows[fault].text,
              s->windows[rank].network.seconds, other_links (s, rank, l->name, fault));
}

static void describe_link_speed (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    const struct heal_link *l = slower_link (s, rank);

    snprintf (
        text, size,
        "link %s of %s runs at %.4g Gbit/s, that of the other hosts at %.4g Gbit/s, and it is "
        "%.0f %% busy",
        l->name, s->windows[rank].host, l->speed * 8 / 1e9,
        other_links (s, rank, l->name, -1) * 8 / 1e9,
        100 * at_most_all (l->bytes / (l->speed * s->windows[rank].network.seconds)));
}

/* A rank that saves a checkpoint waits for storage, too, and the others wait for it.  So storage
 * takes more windows.
 */
static const struct slow_row {
    int windows; /* in a row, until a rank is named */
    bool (*holds) (struct slow_ranks *s, size_t rank, int cause);
    const char *text; /* for the share of the time that was lost, or ... */
    void (*describe) (struct slow_ranks *s, size_t rank, char *text, size_t size);
} slow_rows[SLOW_CAUSES] = {
    [SLOW_STOPPED] = { 3, others_wait, "it is stopped (SIGSTOP) %.0f %% of the time" },
    [SLOW_THROTTLED] = { 3, others_wait,
                         "the limit of its cgroup (cpu.max) throttles it %.0f %% of the time" },
    [SLOW_CROWDED] = { 3, others_wait,
                       "other processes run on its cores: it waits for one %.0f %% of the time" },
    [SLOW_STORAGE] = { 6, others_wait, "it waits for storage %.0f %% of the time" },
    [SLOW_GPU_CLOCK] = { 3, clock_is_low, .describe = describe_clock },
    [SLOW_GPU_LINK] = { 3, link_is_narrow, .describe = describe_gpu_link },
    [SLOW_GPU_SHARED] = { 3, gpu_is_shared, .describe = describe_shared_gpu },
    [SLOW_RESENT] = { 3, resends, .describe = describe_resent },
    [SLOW_FAULTS] = { 3, has_faults, .describe = describe_faults },
    [SLOW_LINK] = { 3, link_is_slow, .describe = describe_link_speed },
};

static void count_window (struct slow_ranks *s, size_t rank)
{
    struct slow_rank *r = &s->ranks[rank];
    bool is_slow = false;

    for (int c = 0; c < SLOW_CAUSES; c++) {
        bool holds = slow_rows[c].holds (s, rank, c);
        r->windows[c] = holds ? r->windows[c] + 1 : 0;
        is_slow |= holds;
    }
    r->well = is_slow ? 0 : r->well + !isnan (s->windows[rank].v[BUSY]);
}

/* ---- report ---- */

static size_t ranks_on (const struct heal_seen *ranks, size_t n, const char *host)
{
    size_t there = 0;

    for (size_t i = 0; i < n; i++)
        there += !strcmp (host_of (&ranks[i]), host);
    return there;
}

/* Begin the sentence: with the rank, or, for what a host does, with all ranks on it. */
static void describe_slow_ranks (const struct heal_seen *ranks, size_t n, size_t rank,
                                 bool is_of_host, char *why, size_t size)
{
    const char *host = host_of (&ranks[rank]);
    size_t there = is_of_host ? ranks_on (ranks, n, host) : 1;

    if (there > 1)
        snprintf (why, size, "the %zu ranks on %s are", there, host);
    else
        snprintf (why, size, "rank %zu on %s is", rank, host);
}

static void describe_slow (struct slow_ranks *s, const struct heal_seen *ranks, size_t rank,
                           int cause, char *why, size_t size)
{
    const struct slow_row *row = &slow_rows[cause];
    char who[128];
    size_t n;

    describe_slow_ranks (ranks, s->n, rank, cause >= SLOW_OF_HOST, who, sizeof (who));
    n = (size_t)snprintf (why, size, "%s slow%s: ", who,
                          cause < SLOW_WAITS ? ", and the others wait for it" : "");
    if (n >= size)
        return;
    if (row->describe)
        row->describe (s, rank, why + n, size - n);
    else {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf (why + n, size - n, row->text, 100 * at_most_all (s->windows[rank].v[cause]));
#pragma GCC diagnostic pop
    }
}

/* The first cause that has lasted and has not been told; SLOW_CAUSES: none. */
static int untold_cause (const struct slow_rank *r)
{
    int c = 0;

    while (c < SLOW_CAUSES && (r->windows[c] < slow_rows[c].windows || r->told & 1U << c))
        c++;
    return c;
}

static enum slow_news next_news (struct slow_ranks *s, const struct heal_seen *ranks, char *why,
                                 size_t size)
{
    for (; s->next < s->n; s->next++) {
        struct slow_rank *r = &s->ranks[s->next];
        int cause = untold_cause (r);
        if (cause < SLOW_CAUSES) {
            r->told |= 1U << cause;
            describe_slow (s, ranks, s->next, cause, why, size);
            return SLOW_FOUND;
        }
        if (r->told && r->well >= WINDOWS_WELL) {
            char who[128];
            describe_slow_ranks (ranks, s->n, s->next, r->told >= 1U << SLOW_OF_HOST, who,
                                 sizeof (who));
            snprintf (why, size, "%s no longer slow", who);
            r->told = 0;
            return SLOW_OVER;
        }
    }
    return SLOW_NOTHING;
}

enum slow_news slow_judge (struct slow_ranks *s, const struct heal_seen *ranks, size_t n,
                           double now, char *why, size_t size)
{
    if (n != s->n)
        return SLOW_NOTHING;
    if (s->next < s->n)
        return next_news (s, ranks, why, size);
    if (s->end > 0 && now - s->end < WINDOW_SECONDS)
        return SLOW_NOTHING;
    for (size_t i = 0; i < n; i++)
        s->windows[i] = measure_window (&s->ranks[i], &ranks[i]);
    if (s->end > 0)
        for (size_t i = 0; i < n; i++)
            count_window (s, i);
    s->end = now;
    s->next = 0;
    return next_news (s, ranks, why, size);
}
