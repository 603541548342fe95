/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what is wrong with the ranks of a step, from what they reported: a pure function. */
#include "launcher/heal/heal.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* clang-format off */
const struct heal_row heal_rows[HEAL_CAUSES] = {
    [HEAL_NONE]    = { REASON_NONE },
    [HEAL_DIED]    = { REASON_RANK_DIED },
    [HEAL_CUT]     = { REASON_RANK_DIED,    .checks = true, .is_free = true },
    [HEAL_STOPPED] = { REASON_RANK_STOPPED, .takes_stacks = true },
    [HEAL_SILENT]  = { REASON_RANK_STOPPED, .takes_stacks = true, .checks = true, .is_free = true },
    [HEAL_HANG]    = { REASON_HANG,         .takes_stacks = true, .checks = true },
    [HEAL_LOST]    = { REASON_NODE_LOST,    .leaves = true, .is_free = true },
    [HEAL_ALONE]   = { REASON_NODE_LOST,    .leaves = true, .is_free = true },
};
/* clang-format on */

enum {
    FACTOR = 5,      /* times the longest gap so far */
    BUSY_FACTOR = 4, /* times heal_limits.least, for busy ranks and without a rhythm */
    BEGUN_SIGNS = 2, /* the first may be just a greeting */
    RHYTHM_SIGNS = 10,
    STOPPED_SECONDS = 10,
    SILENT_SECONDS = 15,
    FRESH_SECONDS = 5,
};
static const double busy_cores = 0.5;

void heal_learn (struct heal_learned *l, double quiet)
{
    if (quiet < l->gap && l->gap > l->longest)
        l->longest = l->gap;
    l->gap = quiet;
}

bool heal_lives (const struct heal_seen *r)
{
    return r->came && !r->over && !r->cut && !r->lost;
}

bool heal_is_silent (const struct heal_seen *r, double now)
{
    return heal_lives (r) && r->heard > 0 && now - r->heard >= SILENT_SECONDS;
}

double heal_quiet (const struct heal_seen *ranks, size_t n, double output, double now)
{
    double last = output;

    for (size_t i = 0; i < n; i++) {
        /* the end of a rank counts as progress, because the others need time to notice it */
        double at = heal_lives (&ranks[i]) ? ranks[i].moved : ranks[i].at;
        if (ranks[i].came && at > last)
            last = at;
    }
    return now > last ? now - last : 0;
}

bool heal_has_begun (const struct heal_limits *limits)
{
    return limits->signs >= BEGUN_SIGNS;
}

static double larger_of (double a, double b)
{
    return a > b ? a : b;
}

/* How long a rank may be quiet, in s, judged by what it does. */
static double rank_patience (const struct heal_seen *r, const struct heal_limits *limits)
{
    if (r->state == 'D' || (r->sleeps > 0 && r->sleeps <= limits->start))
        return limits->start;
    return r->cores >= busy_cores || r->state == 'R' ? BUSY_FACTOR * limits->least : 0;
}

/* Whether no rank sends heartbeats, as while Slurm has suspended the step. */
static bool all_are_silent (const struct heal_seen *ranks, size_t n, double now)
{
    for (size_t i = 0; i < n; i++)
        if (heal_lives (&ranks[i]) && !heal_is_silent (&ranks[i], now))
            return false;
    return true;
}

/* How long all ranks together may be quiet, in s. */
static double heal_limit (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits,
                          const struct heal_learned *learned, double now)
{
    double limit = limits->least;

    if (limits->fixed)
        return limits->least;
    if (!heal_has_begun (limits) || all_are_silent (ranks, n, now))
        limit = limits->start;
    else if (limits->signs < RHYTHM_SIGNS)
        limit *= BUSY_FACTOR;
    for (size_t i = 0; i < n; i++)
        if (heal_lives (&ranks[i]) && (ranks[i].state == 'D' || !heal_is_silent (&ranks[i], now)))
            limit = larger_of (limit, rank_patience (&ranks[i], limits));
    return larger_of (limit, FACTOR * learned->longest);
}

static void blame_rank (struct heal_verdict *v, enum heal_cause cause, long rank,
                        const struct heal_seen *r)
{
    v->cause = cause;
    v->rank = rank;
    snprintf (v->host, sizeof (v->host), "%s", r->host ? r->host : "");
}

static bool went_wrong (const struct heal_seen *r, const struct heal_limits *limits)
{
    return (r->over && r->status != 0 && !limits->may_end) || r->cut || r->lost;
}

/* The earliest failure: a rank that ends because another one failed ends later. */
static long first_wrong (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits)
{
    long first = -1;

    for (size_t i = 0; i < n; i++)
        if (went_wrong (&ranks[i], limits) && (first < 0 || ranks[i].at < ranks[first].at))
            first = (long)i;
    return first;
}

long heal_first_to_fail (const struct heal_seen *ranks, size_t n)
{
    return first_wrong (ranks, n, &(struct heal_limits){ .may_end = false });
}

/* A rank that ends early, even with status 0, leaves the others waiting, or makes them fail. */
static void describe_who_left (struct heal_verdict *v, const struct heal_seen *ranks, size_t n,
                               double until)
{
    long left = -1;

    for (size_t i = 0; i < n; i++)
        if (ranks[i].over && ranks[i].status == 0 && ranks[i].at < until
            && (left < 0 || ranks[i].at < ranks[left].at))
            left = (long)i;
    if (left >= 0)
        snprintf (v->before, sizeof (v->before),
                  ", after rank %ld on %.64s had ended with status 0", left,
                  ranks[left].host ? ranks[left].host : "");
}

static void describe_rank_end (struct heal_verdict *v, const struct heal_seen *r)
{
    int status = r->status;

    v->signal = WIFSIGNALED (status)         ? WTERMSIG (status)
                : WEXITSTATUS (status) > 128 ? WEXITSTATUS (status) - 128
                                             : 0;
    if (v->signal)
        snprintf (v->why, sizeof (v->why), "rank %ld on %s was killed by signal %d (%s)", v->rank,
                  v->host, v->signal, strsignal (v->signal));
    else
        snprintf (v->why, sizeof (v->why), "rank %ld on %s ended with exit status %d%s", v->rank,
                  v->host, WEXITSTATUS (status), v->before);
}

/* Write which node does not answer, and how many ranks it has. */
static void describe_lost (struct heal_verdict *v, const struct heal_seen *ranks, size_t n)
{
    size_t there = 0;

    for (size_t i = 0; i < n; i++)
        there += ranks[i].came && !ranks[i].over && !strcmp (ranks[i].host, v->host);
    snprintf (v->why, sizeof (v->why), "node %s does not answer; %zu rank%s there", v->host, there,
              there == 1 ? "" : "s");
}

/* Count the other hosts that have ranks.  Returns 0 if one of them was heard at about the time when
 * the connection to the first one was lost, or if there is none.
 */
static long silent_hosts (const struct heal_seen *ranks, size_t n, const char *home, double lost)
{
    const char *last = NULL;
    long hosts = 0;

    for (size_t i = 0; i < n; i++) {
        const struct heal_seen *r = &ranks[i];
        if (!r->came || r->over || !home || !strcmp (r->host, home))
            continue;
        if (!r->lost && lost - r->heard < FRESH_SECONDS)
            return 0;
        /* the ranks of a host follow each other, or the count is only higher */
        hosts += !last || strcmp (r->host, last);
        last = r->host;
    }
    return hosts;
}

void heal_blame_lost (const struct heal_seen *ranks, size_t n, struct heal_verdict *v)
{
    blame_rank (v, HEAL_LOST, v->rank, &ranks[v->rank]);
    describe_lost (v, ranks, n);
}

/* If no other host answers, it is more likely that the worker's own host is cut off. */
static void judge_lost (struct heal_verdict *v, const struct heal_seen *ranks, size_t n,
                        const char *home, double lost)
{
    v->others = silent_hosts (ranks, n, home, lost);
    if (v->others == 0) {
        heal_blame_lost (ranks, n, v);
        return;
    }
    v->cause = HEAL_ALONE;
    snprintf (v->why, sizeof (v->why),
              "%.64s reaches no other node: its own network is the likely cause", home);
}

/* Whether srun gave up on the step while some ranks had not started, for instance because it could
 * not reach a slurmd.  Then the ranks that it killed are not to blame.
 */
static bool is_stillborn (const struct heal_seen *ranks, size_t n, const struct heal_seen *first)
{
    if (first->over && !WIFSIGNALED (first->status))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!ranks[i].came)
            return true;
    return false;
}

static void judge_first (struct heal_verdict *v, const struct heal_seen *ranks, size_t n,
                         const char *home, long first)
{
    const struct heal_seen *r = &ranks[first];

    if (r->lost) {
        v->rank = first;
        judge_lost (v, ranks, n, home, r->at);
    } else if (is_stillborn (ranks, n, r)) {
        v->cause = HEAL_CUT;
        snprintf (v->why, sizeof (v->why), "Slurm ended the step before all ranks had started");
    } else if (r->over) {
        blame_rank (v, HEAL_DIED, first, r);
        v->status = r->status;
        describe_who_left (v, ranks, n, r->at);
        describe_rank_end (v, r);
    } else {
        blame_rank (v, HEAL_CUT, first, r);
        snprintf (v->why, sizeof (v->why), "rank %ld on %s is gone: its processes were killed",
                  v->rank, v->host);
    }
}

/* A heartbeat from the moment in which Slurm suspended the job must not count for long. */
static long stopped_rank (const struct heal_seen *ranks, size_t n, double now)
{
    for (size_t i = 0; i < n; i++)
        if (heal_lives (&ranks[i]) && ranks[i].state == 'T'
            && (ranks[i].heard <= 0 || now - ranks[i].heard < FRESH_SECONDS))
            return (long)i;
    return -1;
}

/* Find the rank that has been silent for longest.  A rank that waits for storage (state D) may take
 * its 'dl rank' with it, which reads its files in /proc.  If all are silent, it is none of them.
 */
static long silent_rank (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits,
                         double now)
{
    long found = -1;

    for (size_t i = 0; i < n && !all_are_silent (ranks, n, now); i++) {
        const struct heal_seen *r = &ranks[i];
        if (heal_is_silent (r, now) && (r->state != 'D' || now - r->heard >= limits->start)
            && (found < 0 || r->heard < ranks[found].heard))
            found = (long)i;
    }
    return found;
}

void heal_judge (const struct heal_seen *ranks, size_t n, const struct heal_limits *limits,
                 const struct heal_learned *learned, double output, double now,
                 struct heal_verdict *v)
{
    double quiet = heal_quiet (ranks, n, output, now);
    long first = first_wrong (ranks, n, limits);
    long stopped = stopped_rank (ranks, n, now);
    long silent = silent_rank (ranks, n, limits, now);
    size_t come = 0;

    *v = (struct heal_verdict){ .rank = -1,
                                .quiet = quiet,
                                .limit = heal_limit (ranks, n, limits, learned, now) };
    for (size_t i = 0; i < n; i++)
        come += heal_lives (&ranks[i]);
    if (first >= 0)
        judge_first (v, ranks, n, limits->home, first);
    else if (limits->least <= 0 || come == 0)
        return;
    else if (stopped >= 0 && heal_has_begun (limits) && quiet >= STOPPED_SECONDS) {
        blame_rank (v, HEAL_STOPPED, stopped, &ranks[stopped]);
        snprintf (v->why, sizeof (v->why),
                  "rank %ld on %s is stopped (SIGSTOP), and no rank has made progress for %.0f s",
                  v->rank, v->host, quiet);
    } else if (silent >= 0 && quiet >= SILENT_SECONDS) {
        blame_rank (v, HEAL_SILENT, silent, &ranks[silent]);
        snprintf (v->why, sizeof (v->why),
                  "rank %ld on %s sends no heartbeat for %.0f s, and no rank makes progress",
                  v->rank, v->host, now - ranks[silent].heard);
    } else if (quiet >= v->limit) {
        v->cause = HEAL_HANG;
        if (!limits->may_end)
            describe_who_left (v, ranks, n, now);
        snprintf (v->why, sizeof (v->why), "no rank has made progress for %.0f s%s", quiet,
                  v->before);
    }
}
