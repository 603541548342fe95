/* SPDX-License-Identifier: Apache-2.0 */
/* Find a rank that the others wait for, from how each spends its time.  Pure. */
#include "launcher/heal/heal.h"

#include <stdio.h>
#include <stdlib.h>

#include "launcher/sys/alloc.h"

enum {
    WINDOW_SECONDS = 10,
    BEATS_LEAST = 5,  /* heartbeats in a window; a rank sends one a second */
    WINDOWS_WELL = 3, /* in a row, until a rank is no longer slow */
};

/* Shares of the time. */
static const double busy_least = 0.5, others_most = 0.75, busy_more = 0.25, lost_more = 0.15;

enum slow_cause { SLOW_STOPPED, SLOW_THROTTLED, SLOW_CROWDED, SLOW_STORAGE, SLOW_CAUSES };

/* A rank that saves a checkpoint waits for storage, too, and the others wait for it.  So storage
 * takes more windows.
 */
static const struct slow_row {
    int windows; /* in a row, until a rank is named */
    const char *text;
} slow_rows[SLOW_CAUSES] = {
    [SLOW_STOPPED] = { 3, "it is stopped (SIGSTOP) %.0f %% of the time" },
    [SLOW_THROTTLED] = { 3, "the limit of its cgroup (cpu.max) throttles it %.0f %% of the time" },
    [SLOW_CROWDED] = { 3,
                       "other processes run on its cores: it waits for one %.0f %% of the time" },
    [SLOW_STORAGE] = { 6, "it waits for storage %.0f %% of the time" },
};

/* What a rank did in a window. */
struct slow_window {
    bool known;
    double busy;              /* share of the time in which it did not wait for other ranks */
    double lost[SLOW_CAUSES]; /* shares of the time lost to each cause */
};

struct slow_rank {
    struct heal_work before; /* at the end of the last window */
    int windows;             /* in a row in which it was slow ... */
    enum slow_cause cause;   /* ... for this cause */
    int well;                /* windows in a row in which it was not slow */
    unsigned told;           /* causes for which it has been named since it became slow */
};

struct slow_ranks {
    size_t n;
    double end; /* of the last window; 0: none has ended */
    struct slow_rank *ranks;
    struct slow_window *windows;
    double *others;
    size_t next; /* rank to report on next; n: none */
};

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

static struct slow_window measure_window (struct slow_rank *r, const struct heal_seen *seen)
{
    const struct heal_work *now = &seen->work, *was = &r->before;
    double beats = now->beats - was->beats;
    struct slow_window w = { .known = heal_lives (seen) && beats >= BEATS_LEAST };
    double ready;

    if (w.known) {
        ready = (now->ready - was->ready) / beats;
        w.lost[SLOW_STOPPED] = (now->stopped - was->stopped) / beats;
        w.lost[SLOW_STORAGE] = (now->blocked - was->blocked) / beats;
        w.lost[SLOW_THROTTLED] = (now->throttled - was->throttled) / beats;
        w.busy = at_most_all ((now->active - was->active) / beats + w.lost[SLOW_STOPPED]
                              + w.lost[SLOW_STORAGE]);
        /* the kernel counts throttled threads as ready, too */
        if (w.lost[SLOW_THROTTLED] < ready / 2)
            w.lost[SLOW_CROWDED] = ready - w.lost[SLOW_THROTTLED];
    }
    r->before = *now;
    return w;
}

static int by_share (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median; of two, the lower one. */
static double middle (double *list, size_t n)
{
    qsort (list, n, sizeof (*list), by_share);
    return list[(n - 1) / 2];
}

static double busy_of (const struct slow_window *w, int cause)
{
    return cause < 0 ? w->busy : w->lost[cause];
}

static double others_of (struct slow_ranks *s, size_t rank, int cause)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++)
        if (i != rank && s->windows[i].known)
            s->others[n++] = busy_of (&s->windows[i], cause);
    return n ? middle (s->others, n) : 1;
}

/* The cause to which it lost the most time, and more than the others. */
static enum slow_cause cause_of (struct slow_ranks *s, size_t rank)
{
    enum slow_cause most = SLOW_CAUSES;
    double best = 0;

    for (int c = 0; c < SLOW_CAUSES; c++) {
        double lost = s->windows[rank].lost[c];
        if (lost > best && lost - others_of (s, rank, c) >= lost_more) {
            most = (enum slow_cause)c;
            best = lost;
        }
    }
    return most;
}

/* Why the others wait for it; SLOW_CAUSES: they do not, or the cause is unknown. */
static enum slow_cause slow_of (struct slow_ranks *s, size_t rank)
{
    const struct slow_window *w = &s->windows[rank];
    double others = w->known ? others_of (s, rank, -1) : 1;

    if (!w->known || w->busy < busy_least || others > others_most || w->busy - others < busy_more)
        return SLOW_CAUSES;
    return cause_of (s, rank);
}

static void count_window (struct slow_ranks *s, size_t rank)
{
    struct slow_rank *r = &s->ranks[rank];
    enum slow_cause cause = slow_of (s, rank);

    if (cause == SLOW_CAUSES) {
        r->windows = 0;
        r->well += s->windows[rank].known;
        return;
    }
    r->windows = r->windows > 0 && r->cause == cause ? r->windows + 1 : 1;
    r->cause = cause;
    r->well = 0;
}

/* ---- report ---- */

static void say_slow (const struct slow_ranks *s, const struct heal_seen *seen, size_t rank,
                      char *why, size_t size)
{
    const struct slow_rank *r = &s->ranks[rank];
    int n = snprintf (why, size, "rank %zu on %s is slow, and the others wait for it: ", rank,
                      seen->host ? seen->host : "?");

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    if (n > 0 && (size_t)n < size)
        snprintf (why + n, size - (size_t)n, slow_rows[r->cause].text,
                  100 * at_most_all (s->windows[rank].lost[r->cause]));
#pragma GCC diagnostic pop
}

static enum slow_news next_news (struct slow_ranks *s, const struct heal_seen *ranks, char *why,
                                 size_t size)
{
    for (; s->next < s->n; s->next++) {
        struct slow_rank *r = &s->ranks[s->next];
        if (r->windows > 0 && r->windows >= slow_rows[r->cause].windows
            && !(r->told & 1U << r->cause)) {
            r->told |= 1U << r->cause;
            say_slow (s, &ranks[s->next], s->next, why, size);
            return SLOW_FOUND;
        }
        if (r->told && r->well >= WINDOWS_WELL) {
            r->told = 0;
            snprintf (why, size, "rank %zu on %s is not slow any more", s->next,
                      ranks[s->next].host ? ranks[s->next].host : "?");
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
