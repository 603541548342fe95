/* SPDX-License-Identifier: Apache-2.0 */
/* What dl show says of an experiment, before the table of its trials. */
#include "launcher/cmd/overview.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "launcher/cmd/fault.h"
#include "launcher/format/text.h"
#include "launcher/format/trials_table.h"
#include "launcher/membership/peer.h"
#include "launcher/results/latest_metric.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/slurm_memory.h"
#include "launcher/sys/small_file.h"

/* ---- workers ---- */

static bool has_claim (const struct sweep *s, long trial, const char *nonce)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    char path[PATH_MAX];
    struct stat st;
    char *text;
    bool has;

    snprintf (path,
              sizeof (path),
              "%s/trials/%04ld/claim.%ld",
              s->dir,
              trial,
              t->over + 1);
    if (lstat (path, &st) < 0 || !(text = file_read (path, 4096, NULL, NULL)))
        return false;
    has = strstr (text, nonce);
    free (text);
    return has;
}

/* The trial that it trains, 0: none. */
static long trial_of (const struct sweep *s, const char *nonce)
{
    for (long i = 1; i <= s->ntrials; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        if (t->state != TRIAL_OPEN)
            continue;
        if (t->owner ? !strcmp (t->owner, nonce) : has_claim (s, i, nonce))
            return i;
    }
    return 0;
}

/* Seconds since its last sign of life, by the file's time: for people. */
static double silence_of (const struct sweep *s, const struct peer_info *w)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/workers/%s", s->dir, w->nonce);
    return lstat (path, &st) < 0 ? 0 : difftime (time (NULL), st.st_mtime);
}

/* ": trial 3 to 27, at 7: loss 0.97, 3.0s ago, 2.1 a second" */
static void print_progress (const struct sweep *s, long trial)
{
    struct metric_progress p;
    char ago[32];

    printf (": trial %ld to %lld",
            trial,
            (long long)sweep_trial (s, trial)->target);
    if (trial_progress (s, trial, &p) < 0)
        return;
    duration_text (ago, sizeof (ago), progress_age (&p));
    printf (", at %lld: %s %.6g, %s ago",
            (long long)p.step,
            sweep_metric (s, 0),
            p.value,
            ago);
    if (isfinite (progress_rate (&p)))
        printf (", %.3g a second", progress_rate (&p));
}

static void print_worker (const struct sweep *s, const struct peer_info *w)
{
    double silence = silence_of (s, w);
    long trial;

    printf ("worker %s on %s", w->slot, w->host);
    if ((trial = trial_of (s, w->nonce)))
        print_progress (s, trial);
    if (silence > 2 * (double)s->exp->heartbeat)
        printf (" (no heartbeat for %.0f s)", silence);
    putchar ('\n');
}

static bool is_of_job (const struct peer_info *w, const struct submit *a)
{
    size_t len = strlen (a->job);

    return !strncmp (w->slot, a->job, len) && w->slot[len] == '_';
}

/* Whether a worker of this array was ever there. */
static bool
has_begun (const struct submit *a, const struct peer_info *list, long n)
{
    for (long i = 0; i < n; i++)
        if (is_of_job (&list[i], a))
            return true;
    return false;
}

static const struct submit *last_job (const struct sweep *s)
{
    return s->nsubmits ? &s->submits[s->nsubmits - 1] : NULL;
}

/* No worker of the last job was ever there. */
static bool
is_waiting (const struct sweep *s, const struct peer_info *list, long n)
{
    return s->state == SWEEP_RUNNING && last_job (s)
           && !has_begun (last_job (s), list, n);
}

/* Slurm, which is not asked, may have requeued them. */
static void print_resume (const struct sweep *s)
{
    const char *name = strrchr (s->dir, '/') + 1;

    if (last_job (s))
        printf ("'squeue --jobs=%s' says whether Slurm has requeued them; 'dl "
                "resume %s' starts others\n",
                last_job (s)->job,
                name);
    else
        printf ("'dl resume %s' starts workers\n", name);
}

/* Nobody is at work: the last job may wait for ever.  Slurm is not asked. */
static void print_waiting (const struct sweep *s)
{
    const struct submit *a = last_job (s);
    double ago = difftime (time (NULL), (time_t)a->time);
    char when[32];
    char text[32];

    time_text (when, sizeof (when), a->time);
    duration_text (text, sizeof (text), ago > 0 ? ago : 0);
    printf ("no worker of job %s has started: submitted %s, %s ago; see "
            "'squeue --jobs=%s'\n",
            a->job,
            when,
            text,
            a->job);
}

static bool is_alive (const struct sweep *s, const struct peer_info *w)
{
    return !w->gone && (w->here || silence_of (s, w) <= (double)s->exp->lease);
}

/* ---- all of them ---- */

struct worker_view {
    struct peer_info *list;
    long n;
    long alive;
    double silence; /* of the one that gave the last sign of life */
};

static struct worker_view look_at_workers (const struct sweep *s)
{
    struct worker_view v = { .silence = INFINITY };

    v.n = peer_list (s->dir, &v.list, NULL);
    for (long i = 0; i < v.n; i++) {
        v.alive += is_alive (s, &v.list[i]);
        v.silence = fmin (v.silence, silence_of (s, &v.list[i]));
    }
    return v;
}

static double idle_of (const struct sweep *s, const struct worker_view *v)
{
    if (s->state != SWEEP_RUNNING || v->n <= 0 || is_waiting (s, v->list, v->n)
        || (v->alive > 0 && v->silence <= 3 * (double)s->exp->heartbeat))
        return NAN;
    return v->silence;
}

double sweep_idle (const struct sweep *s)
{
    struct worker_view v = { .list = NULL };
    double idle = NAN;

    if (s->state == SWEEP_RUNNING) {
        v = look_at_workers (s);
        idle = idle_of (s, &v);
    }
    free (v.list);
    return idle;
}

/* What follows "running": nothing, or that nobody is at work. */
static void print_idle (const struct sweep *s, const struct worker_view *v)
{
    double idle = idle_of (s, v);
    char ago[32];

    if (isnan (idle))
        return;
    duration_text (ago, sizeof (ago), idle);
    if (v->alive == 0)
        printf (", but no worker is at work: the last one ended %s ago", ago);
    else
        printf (", but no worker has given a sign of life for %s", ago);
}

static void print_workers (const struct sweep *s, const struct worker_view *v)
{
    for (long i = 0; i < v->n; i++)
        if (is_alive (s, &v->list[i]))
            print_worker (s, &v->list[i]);
    if (v->alive == 0 && is_waiting (s, v->list, v->n))
        print_waiting (s);
    else if (!isnan (idle_of (s, v))) {
        print_last_words (s);
        print_resume (s);
    }
}

/* ---- the rest ---- */

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

    if (e->source && e->source_trial)
        printf ("forked from %s, trial %ld at length %lld\n",
                e->source,
                e->source_trial,
                (long long)e->source_length);
    else if (e->source)
        printf ("forked from %s\n", e->source);
}

static void print_memory (const struct sweep *s)
{
    char text[32];

    if (s->memory == 0)
        return;
    slurm_bytes_text (text, sizeof (text), s->memory);
    printf ("memory: %s for each trial, since some ran out of it%s\n",
            text,
            s->memory_limit ? "; Slurm has no more" : "");
}

static void print_last_action (const struct sweep *s)
{
    char when[32];

    if (!s->last_action.what)
        return;
    time_text (when, sizeof (when), s->last_action.time);
    printf ("last: %s%s by %s, %s\n",
            s->last_action.what,
            s->last_action.undone ? " (undone)" : "",
            s->last_action.by && *s->last_action.by ? s->last_action.by
                                                    : "somebody",
            when);
}

/* By what its workers said last: Slurm is not asked. */
static void print_jobs (const struct sweep *s, const struct worker_view *v)
{
    for (size_t i = 0; i < s->nsubmits; i++) {
        const struct submit *a = &s->submits[i];
        long alive = 0;
        for (long k = 0; k < v->n; k++)
            alive += is_of_job (&v->list[k], a) && is_alive (s, &v->list[k]);
        printf ("job %s: workers %ld-%ld", a->job, a->first, a->last);
        if (has_begun (a, v->list, v->n) && alive == 0)
            printf (", all have ended");
        else if (alive > 0)
            printf (", %ld at work", alive);
        putchar ('\n');
    }
}

void print_overview (const struct sweep *s)
{
    struct worker_view v = look_at_workers (s);

    printf (
        "%s: %s%s", s->dir, state_text (s), s->archived ? " (archived)" : "");
    print_idle (s, &v);
    printf (", searcher %s, %.0f %% done\n",
            s->exp->searcher_name,
            floor (100 * searcher_progress (s->searcher)));
    print_best (s);
    print_failed (s);
    print_fault (s);
    print_results (s);
    print_limits (s);
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
