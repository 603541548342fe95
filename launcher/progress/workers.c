/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of an experiment according to their own files, without asking Slurm. */
#include "launcher/progress/progress.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "launcher/config/experiment.h"
#include "launcher/config/worker_settings.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/small_file.h"

static int trial_claim_path (const struct sweep *s, long trial, char path[PATH_MAX])
{
    struct stat st;

    snprintf (path, PATH_MAX, "%s/trials/%04ld/claim.%ld", s->dir, trial,
              sweep_trial (s, trial)->over + 1);
    return lstat (path, &st);
}

bool trial_is_claimed (const struct sweep *s, long trial)
{
    char path[PATH_MAX];

    return trial_claim_path (s, trial, path) == 0;
}

static bool has_claim (const struct sweep *s, long trial, const char *nonce)
{
    char path[PATH_MAX];
    char *text;
    bool has;

    if (trial_claim_path (s, trial, path) < 0
        || !(text = file_read_now (path, 4096, NULL, NULL, NULL)))
        return false;
    has = strstr (text, nonce);
    free (text);
    return has;
}

long worker_trial (const struct sweep *s, const char *nonce)
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

double worker_silence (const struct sweep *s, const struct peer_info *w)
{
    char path[PATH_MAX];
    struct stat st;

    snprintf (path, sizeof (path), "%s/workers/%s", s->dir, w->nonce);
    return lstat (path, &st) < 0 ? 0 : difftime (time (NULL), st.st_mtime);
}

bool worker_is_alive (const struct sweep *s, const struct peer_info *w)
{
    return !w->gone && (w->here || worker_silence (s, w) <= (double)s->exp->worker->lease);
}

struct worker_view workers_look (const struct sweep *s)
{
    struct worker_view v = { .silence = INFINITY };

    v.n = peer_list (s->dir, &v.list, NULL);
    for (long i = 0; i < v.n; i++) {
        v.alive += worker_is_alive (s, &v.list[i]);
        v.silence = fmin (v.silence, worker_silence (s, &v.list[i]));
    }
    return v;
}

bool worker_is_of (const struct peer_info *w, const struct submit *a)
{
    size_t len = strlen (a->job);

    return !strncmp (w->slot, a->job, len) && (w->slot[len] == '_' || !w->slot[len]);
}

bool workers_begun (const struct worker_view *v, const struct submit *a)
{
    for (long i = 0; i < v->n; i++)
        if (worker_is_of (&v->list[i], a))
            return true;
    return false;
}

const struct submit *workers_awaited (const struct sweep *s, const struct worker_view *v)
{
    const struct submit *last = s->nsubmits ? &s->submits[s->nsubmits - 1] : NULL;

    return s->state == SWEEP_RUNNING && last && !workers_begun (v, last) ? last : NULL;
}

double workers_idle (const struct sweep *s, const struct worker_view *v)
{
    if (s->state != SWEEP_RUNNING || v->n <= 0 || workers_awaited (s, v)
        || (v->alive > 0 && v->silence <= 3 * (double)s->exp->worker->heartbeat))
        return NAN;
    return v->silence;
}

void workers_idle_text (const struct sweep *s, const struct worker_view *v, char *buf, size_t size)
{
    double idle = workers_idle (s, v);
    char ago[32];

    *buf = '\0';
    if (isnan (idle))
        return;
    duration_text (ago, sizeof (ago), idle);
    if (v->alive == 0)
        snprintf (buf, size, "no worker is left: the last one ended %s ago", ago);
    else
        snprintf (buf, size, "no worker has sent a heartbeat for %s", ago);
}
