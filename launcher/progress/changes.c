/* SPDX-License-Identifier: Apache-2.0 */
/* Print the progress of an experiment as lines, for a file or a pipe. */
#include "launcher/progress/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "runtime/base/clock.h"

/* What has already been printed about a trial. */
struct reported {
    size_t results;
    int fails, losts;
    bool rejected;
    int ooms;
    long attempt;  /* the attempt whose recoveries were last printed */
    size_t healed; /* bytes of its notes that were printed */
};

static void add_reported (struct changes *c, const struct sweep *s)
{
    while (c->nreported < s->ntrials) {
        XGROW (c->reported, (size_t)c->nreported);
        c->reported[c->nreported++] = (struct reported){ .attempt = 1 };
    }
}

static void print_disk_space (struct changes *c, const struct sweep *s, const char *elapsed)
{
    bool full = s->state == SWEEP_RUNNING && disk_reserve_is_spent (s->dir);

    if (full != c->full)
        printf ("%8s  %s\n", elapsed, full ? DISK_RESERVE_SPENT : "there is space again");
    c->full = full;
}

/* With repeats, the mean of a point can be the best, never a single trial. */
static bool is_best (const struct sweep *s, long trial, int64_t length)
{
    return s->exp->search->config.repeats <= 1 && trial == sweep_best (s)
           && length == sweep_best_length (s);
}

/* Print all new results, not only the latest of the trial. */
static void print_new_results (struct changes *c, const struct sweep *s, long trial,
                               const char *elapsed)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    struct reported *r = &c->reported[trial - 1];

    for (; r->results < t->nmilestones; r->results++) {
        const struct milestone *m = &t->milestones[r->results];
        bool last = r->results + 1 == t->nmilestones;
        if (s->exp->metric->is_assumed && !isfinite (m->metric)) {
            printf ("%8s  trial %-4ld succeeded\n", elapsed, trial);
            continue;
        }
        printf ("%8s  trial %-4ld length %-6lld %s %.6g%s", elapsed, trial, (long long)m->length,
                s->exp->metric->name, m->metric,
                last && t->stopped              ? "  stopped early"
                : is_best (s, trial, m->length) ? "  best"
                                                : "");
        if (last && t->ended)
            printf (t->ended > m->length ? "  logged steps up to %lld, beyond %lld"
                                         : "  ended at %lld of %lld",
                    (long long)t->ended, (long long)m->length);
        putchar ('\n');
    }
}

/* Print the notes of one attempt (lines "TIME TEXT") from byte 'from' on.  Returns
 * their length.
 */
static size_t print_attempt_healing (const struct sweep *s, long trial, long attempt, size_t from,
                                     const char *elapsed)
{
    char *notes = trial_healing (s, trial, attempt);
    size_t n = notes ? strlen (notes) : 0;
    char *save = NULL;

    for (char *line = n > from ? strtok_r (notes + from, "\n", &save) : NULL; line;
         line = strtok_r (NULL, "\n", &save))
        printf ("%8s  trial %-4ld attempt %ld:%s\n", elapsed, trial, attempt,
                strchr (line, ' ') ?: "");
    free (notes);
    return n > from ? n : from;
}

/* Print what the worker noticed about the trial's ranks and how it recovered them,
 * including attempts that ended since the last call.
 */
static void print_new_healing (struct reported *r, const struct sweep *s, long trial,
                               const char *elapsed)
{
    const struct sweep_trial *t = sweep_trial (s, trial);

    if (!experiment_has_ranks (s->exp) && !s->exp->job->is_given)
        return;
    for (; r->attempt <= t->over; r->attempt++, r->healed = 0)
        print_attempt_healing (s, trial, r->attempt, r->healed, elapsed);
    if (t->state == TRIAL_OPEN)
        r->healed = print_attempt_healing (s, trial, r->attempt, r->healed, elapsed);
}

static void note_trial (struct reported *r, const struct sweep_trial *t)
{
    r->results = t->nmilestones;
    r->fails = t->tries.failed;
    r->losts = t->tries.lost;
    r->rejected = t->state == TRIAL_REJECTED;
    r->ooms = t->ooms;
}

void changes_print (struct changes *c, const struct sweep *s)
{
    char elapsed[32];

    add_reported (c, s);
    duration_text (elapsed, sizeof (elapsed), monotonic () - c->start);
    print_disk_space (c, s, elapsed);
    for (long i = 0; i < s->ntrials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        struct reported *r = &c->reported[i];
        print_new_healing (r, s, i + 1, elapsed);
        if (t->tries.failed != r->fails)
            printf ("%8s  trial %-4ld failed (%d): %s\n", elapsed, i + 1, t->tries.failed,
                    t->why ? t->why : "");
        if (t->tries.lost > r->losts && s->exp->job->is_given)
            printf ("%8s  trial %-4ld restarts: %s\n", elapsed, i + 1, t->why ? t->why : "");
        if (t->ooms != r->ooms)
            printf ("%8s  trial %-4ld %s\n", elapsed, i + 1,
                    t->why && t->tries.failed == r->fails ? t->why : "out of memory");
        print_new_results (c, s, i + 1, elapsed);
        if (t->state == TRIAL_REJECTED && !r->rejected)
            printf ("%8s  trial %-4ld rejected\n", elapsed, i + 1);
        note_trial (r, t);
    }
    fflush (stdout);
}

void changes_skip (struct changes *c, const struct sweep *s)
{
    add_reported (c, s);
    for (long i = 0; i < s->ntrials; i++) {
        note_trial (&c->reported[i], &s->trials[i]);
        c->reported[i].attempt = s->trials[i].over + 1;
    }
}

void changes_free (struct changes *c)
{
    free (c->reported);
    *c = (struct changes){ 0 };
}
