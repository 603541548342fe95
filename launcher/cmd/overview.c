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
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/disk_reserve.h"
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
    if (stat (path, &st) < 0 || !(text = file_read (path, 4096, NULL, NULL)))
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
    return stat (path, &st) < 0 ? 0 : difftime (time (NULL), st.st_mtime);
}

/* Returns whether it seems to be alive. */
static bool print_worker (const struct sweep *s, const struct peer_info *w)
{
    double silence = silence_of (s, w);
    long trial;

    if (w->gone || (!w->here && silence > (double)s->exp->lease))
        return false;
    printf ("worker %s on %s", w->slot, w->host);
    if ((trial = trial_of (s, w->nonce)))
        printf (": trial %ld to %lld",
                trial,
                (long long)sweep_trial (s, trial)->target);
    if (silence > 2 * (double)s->exp->heartbeat)
        printf (" (no heartbeat for %.0f s)", silence);
    putchar ('\n');
    return true;
}

/* Whether a worker of this array was ever there. */
static bool
has_begun (const struct submit *a, const struct peer_info *list, long n)
{
    size_t len = strlen (a->job);

    for (long i = 0; i < n; i++)
        if (!strncmp (list[i].slot, a->job, len) && list[i].slot[len] == '_')
            return true;
    return false;
}

/* Nobody is at work: the last job may wait for ever.  Slurm is not asked. */
static void
print_waiting (const struct sweep *s, const struct peer_info *list, long n)
{
    const struct submit *a = s->nsubmits ? &s->submits[s->nsubmits - 1] : NULL;
    double ago = a ? difftime (time (NULL), (time_t)a->time) : 0;
    char when[32];
    char text[32];

    if (!a || s->state != SWEEP_RUNNING || has_begun (a, list, n))
        return;
    time_text (when, sizeof (when), a->time);
    duration_text (text, sizeof (text), ago > 0 ? ago : 0);
    printf ("no worker of job %s has started: submitted %s, %s ago; see "
            "'squeue --jobs=%s'\n",
            a->job,
            when,
            text,
            a->job);
}

static void print_workers (const struct sweep *s)
{
    struct peer_info *list;
    long n = peer_list (s->dir, &list, NULL);
    long alive = 0;

    for (long i = 0; i < n; i++)
        alive += print_worker (s, &list[i]);
    if (alive == 0)
        print_waiting (s, list, n);
    free (list);
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

static void print_jobs (const struct sweep *s)
{
    for (size_t i = 0; i < s->nsubmits; i++)
        printf ("job %s: workers %ld-%ld\n",
                s->submits[i].job,
                s->submits[i].first,
                s->submits[i].last);
}

void print_overview (const struct sweep *s)
{
    printf ("%s: %s%s, searcher %s, %.0f %% done\n",
            s->dir,
            state_text (s),
            s->archived ? " (archived)" : "",
            s->exp->searcher_name,
            floor (100 * searcher_progress (s->searcher)));
    print_best (s);
    print_failed (s);
    print_fault (s);
    print_limits (s);
    print_source (s);
    print_labels (s);
    print_last_action (s);
    print_excluded (s);
    if (s->state == SWEEP_RUNNING && disk_reserve_is_spent (s->dir))
        puts (DISK_RESERVE_SPENT);
    if (!sweep_has_ended (s))
        print_jobs (s);
    print_workers (s);
}
