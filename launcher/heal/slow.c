/* SPDX-License-Identifier: Apache-2.0 */
/* Find a slow rank, from how each spends its time, and from its hardware.  Pure. */
#include "launcher/heal/heal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/nvml.h"

/* If a rank's processor is slow, the others sleep while they wait for it: how each spends its time
 * shows which one they wait for.
 *
 * If its GPU is slow, nothing of the kind does.  Ranks that wait in NCCL keep their cores and the
 * SMs of their GPUs busy.  They draw less power than a GPU that computes, but so does one that runs
 * at a low clock.  Therefore hardware is judged by what slows it down: the driver states the reason
 * for a low clock, and the other ranks show which clock is normal, as all of them should have the
 * same.  A GPU that has more work than the others shows no such reason, or only that it reached the
 * same power limit as theirs.
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

enum slow_cause {
    SLOW_STOPPED,
    SLOW_THROTTLED,
    SLOW_CROWDED,
    SLOW_STORAGE,
    SLOW_WAITS, /* those above make the others wait in sleep */
    SLOW_GPU_CLOCK = SLOW_WAITS,
    SLOW_GPU_LINK,
    SLOW_GPU_SHARED,
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
    MEASURES
};

/* What a rank did in a window.  NaN: not known. */
struct slow_window {
    double v[MEASURES];
    double narrow; /* share of the time in which its link was not what it could be */
    double slowed[HEAL_CLOCK_REASONS];
    struct heal_gpu gpu;
};

struct slow_rank {
    struct heal_work before; /* at the end of the last window */
    struct heal_gpu_work gpu_before;
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

static struct slow_window measure_window (struct slow_rank *r, const struct heal_seen *seen)
{
    struct slow_window w = { .narrow = 0 };

    for (int i = 0; i < MEASURES; i++)
        w.v[i] = NAN;
    if (heal_lives (seen) && seen->work.beats - r->before.beats >= BEATS_LEAST)
        measure_time (&r->before, &seen->work, &w);
    if (heal_lives (seen) && seen->gpu.readings - r->gpu_before.readings >= BEATS_LEAST)
        measure_gpu (&r->gpu_before, &seen->gpu, &w);
    r->before = seen->work;
    r->gpu_before = seen->gpu;
    return w;
}

static int by_value (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of the other ranks; of two, the lower one.  NaN if it is not known of any. */
static double others_of (struct slow_ranks *s, size_t rank, int measure)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (i != rank && !isnan (s->windows[i].v[measure]))
            s->others[n++] = s->windows[i].v[measure];
    if (n == 0)
        return NAN;
    qsort (s->others, n, sizeof (*s->others), by_value);
    return s->others[(n - 1) / 2];
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

/* ---- how they are told ---- */

static void say_clock (struct slow_ranks *s, size_t rank, char *text, size_t size)
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

static void say_link (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    const struct heal_gpu *g = &s->windows[rank].gpu;

    snprintf (text, size,
              "the PCIe link of its GPU %d has %d of %d lanes, at generation %d of %d: "
              "%.0f %% of the rate of the others",
              (int)g->index, (int)g->lanes, (int)g->lanes_most, (int)g->generation,
              (int)g->generation_most, 100 * s->windows[rank].v[LINK] / others_of (s, rank, LINK));
}

static void say_shared (struct slow_ranks *s, size_t rank, char *text, size_t size)
{
    const struct slow_window *w = &s->windows[rank];

    snprintf (text, size, "another program (pid %d) uses its GPU %d %.0f %% of the time",
              (int)w->gpu.other_process, (int)w->gpu.index, 100 * w->v[OTHERS_ON_GPU]);
}

/* A rank that saves a checkpoint waits for storage, too, and the others wait for it.  So storage
 * takes more windows.
 */
static const struct slow_row {
    int windows; /* in a row, until a rank is named */
    bool (*holds) (struct slow_ranks *s, size_t rank, int cause);
    const char *text; /* for the share of the time that was lost, or ... */
    void (*say) (struct slow_ranks *s, size_t rank, char *text, size_t size);
} slow_rows[SLOW_CAUSES] = {
    [SLOW_STOPPED] = { 3, others_wait, "it is stopped (SIGSTOP) %.0f %% of the time" },
    [SLOW_THROTTLED] = { 3, others_wait,
                         "the limit of its cgroup (cpu.max) throttles it %.0f %% of the time" },
    [SLOW_CROWDED] = { 3, others_wait,
                       "other processes run on its cores: it waits for one %.0f %% of the time" },
    [SLOW_STORAGE] = { 6, others_wait, "it waits for storage %.0f %% of the time" },
    [SLOW_GPU_CLOCK] = { 3, clock_is_low, .say = say_clock },
    [SLOW_GPU_LINK] = { 3, link_is_narrow, .say = say_link },
    [SLOW_GPU_SHARED] = { 3, gpu_is_shared, .say = say_shared },
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

static const char *host_of (const struct heal_seen *seen)
{
    return seen->host ? seen->host : "?";
}

static void say_slow (struct slow_ranks *s, const struct heal_seen *seen, size_t rank, int cause,
                      char *why, size_t size)
{
    const struct slow_row *row = &slow_rows[cause];
    size_t n = (size_t)snprintf (why, size, "rank %zu on %s is slow%s: ", rank, host_of (seen),
                                 cause < SLOW_WAITS ? ", and the others wait for it" : "");

    if (n >= size)
        return;
    if (row->say)
        row->say (s, rank, why + n, size - n);
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
            say_slow (s, &ranks[s->next], s->next, cause, why, size);
            return SLOW_FOUND;
        }
        if (r->told && r->well >= WINDOWS_WELL) {
            r->told = 0;
            snprintf (why, size, "rank %zu on %s is not slow any more", s->next,
                      host_of (&ranks[s->next]));
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
