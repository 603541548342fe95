/* SPDX-License-Identifier: Apache-2.0 */
/* What dl show says of an experiment, before the table of its trials. */
#include "launcher/cmd/overview.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "launcher/cmd/fault.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/progress/workers.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/text.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/worker/executor.h"

/* ": trial 3 to 27, at 7: loss 0.97, 3.0s ago, 2.1 a second" */
static void print_trial_progress (const struct sweep *s, long trial)
{
    struct metric_progress p;
    char ago[32];

    printf (": trial %ld to %lld", trial, (long long)sweep_trial (s, trial)->target);
    if (trial_progress (s, trial, &p) < 0)
        return;
    duration_text (ago, sizeof (ago), progress_age (&p));
    printf (", at %lld: %s %.6g, %s ago", (long long)p.step, sweep_metric (s, 0), p.value, ago);
    if (isfinite (progress_rate (&p)))
        printf (", %.3g a second", progress_rate (&p));
}

static void print_worker (const struct sweep *s, const struct peer_info *w)
{
    double silence = worker_silence (s, w);
    long trial;

    printf ("worker %s on %s", w->slot, w->host);
    if ((trial = worker_trial (s, w->nonce)))
        print_trial_progress (s, trial);
    if (silence > 2 * (double)s->exp->worker->heartbeat)
        printf (" (no heartbeat for %.0f s)", silence);
    putchar ('\n');
}

static const struct submit *last_job (const struct sweep *s)
{
    return s->nsubmits ? &s->submits[s->nsubmits - 1] : NULL;
}

/* Slurm, which is not asked, may have requeued them. */
static void print_resume (const struct sweep *s)
{
    if (last_job (s))
        printf ("'squeue --jobs=%s' says whether Slurm has requeued them; 'dl "
                "resume %s' starts others\n",
                last_job (s)->job, s->word);
    else
        printf ("'dl resume %s' starts workers\n", s->word);
}

/* Nobody is at work: the last job may wait for ever.  Slurm is not asked. */
static void print_waiting (const struct sweep *s, const struct submit *a)
{
    double ago = difftime (time (NULL), (time_t)a->time);
    const char *type = unseen_file_system (s->dir);
    char why[PATH_MAX + 512];
    char when[32];
    char text[32];

    last_words_text (s, a->job, why, sizeof (why));
    if (*why) {
        printf ("no worker of job %s has begun: %s; when that is fixed, 'dl "
                "resume %s' starts others\n",
                a->job, why, s->word);
        return;
    }
    time_text (when, sizeof (when), a->time);
    duration_text (text, sizeof (text), ago > 0 ? ago : 0);
    printf ("no worker of job %s has started: submitted %s, %s ago; see "
            "'squeue --jobs=%s'%s%s%s\n",
            a->job, when, text, a->job,
            type ? " (its nodes must see this folder, which is on " : "", type ? type : "",
            type ? ", this machine's own)" : "");
}

double sweep_idle (const struct sweep *s)
{
    struct worker_view v = { .list = NULL };
    double idle = NAN;

    if (s->state == SWEEP_RUNNING) {
        v = workers_look (s);
        idle = workers_idle (s, &v);
    }
    free (v.list);
    return idle;
}

/* What follows "running": nothing, or that nobody is at work. */
static void print_idle (const struct sweep *s, const struct worker_view *v)
{
    char text[128];

    workers_idle_text (s, v, text, sizeof (text));
    if (*text)
        printf (", but %s", text);
}

static void print_workers (const struct sweep *s, const struct worker_view *v)
{
    for (long i = 0; i < v->n; i++)
        if (worker_is_alive (s, &v->list[i]))
            print_worker (s, &v->list[i]);
    if (v->alive == 0 && workers_awaited (s, v))
        print_waiting (s, workers_awaited (s, v));
    else if (!isnan (workers_idle (s, v))) {
        print_last_words (s);
        print_resume (s);
    }
}

static void print_labels (const struct sweep *s)
{
    if (!s->labels || !*s->labels)
        return;
    printf ("labels:");
    for (char **l = s->labels; *l; l++)
        printf (" %s", *l);
    putchar ('\n');
}

static void print_source (const struct sweep *s)
{
    const struct experiment *e = s->exp;

    if (e->fork->experiment && e->fork->trial && !e->fork->length)
        printf ("forked from %s, the configuration of trial %ld\n", e->fork->experiment,
                e->fork->trial);
    else if (e->fork->experiment && e->fork->trial)
        printf ("forked from %s, trial %ld at length %lld\n", e->fork->experiment, e->fork->trial,
                (long long)e->fork->length);
    else if (e->fork->experiment)
        printf ("forked from %s\n", e->fork->experiment);
}

static void print_memory (const struct sweep *s)
{
    char text[32];

    if (s->memory == 0)
        return;
    slurm_bytes_text (text, sizeof (text), s->memory);
    printf ("memory: %s for each trial, since some ran out of it%s\n", text,
            s->memory_limit ? "; Slurm has no more" : "");
}

static void print_last_action (const struct sweep *s)
{
    char when[32];

    if (!s->last_action.what)
        return;
    time_text (when, sizeof (when), s->last_action.time);
    printf ("last: %s%s by %s, %s\n", s->last_action.what, s->last_action.undone ? " (undone)" : "",
            s->last_action.by && *s->last_action.by ? s->last_action.by : "somebody", when);
}

/* By what its workers said last: Slurm is not asked. */
static void print_jobs (const struct sweep *s, const struct worker_view *v)
{
    for (size_t i = 0; i < s->nsubmits; i++) {
        const struct submit *a = &s->submits[i];
        long alive = 0;
        for (long k = 0; k < v->n; k++)
            alive += worker_is_of (&v->list[k], a) && worker_is_alive (s, &v->list[k]);
        printf ("job %s", a->job);
        if (a->first > 0)
            printf (": workers %ld-%ld", a->first, a->last);
        if (workers_begun (v, a) && alive == 0)
            printf (", all have ended");
        else if (alive > 0)
            printf (", %ld at work", alive);
        putchar ('\n');
    }
}

void print_overview (const struct sweep *s)
{
    struct worker_view v = workers_look (s);

    printf ("%s: %s%s", s->dir, state_text (s), s->archived ? " (archived)" : "");
    print_idle (s, &v);
    printf (", searcher %s, %.0f %% done\n", s->exp->search->searcher,
            floor (100 * searcher_progress (s->searcher)));
    print_direction (s);
    print_best (s);
    print_failed (s);
    print_fault (s);
    print_results (s);
    print_limits (s);
    print_shared_files (s);
    print_source (s);
    print_labels (s);
    print_last_action (s);
    print_memory (s);
    print_excluded (s);
    if (s->state == SWEEP_RUNNING && disk_reserve_is_spent (s->dir))
        puts (DISK_RESERVE_SPENT);
    if (!sweep_has_ended (s))
        print_jobs (s, &v);
    print_workers (s, &v);
    free (v.list);
}
