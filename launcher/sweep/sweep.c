/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of an experiment, and views of its state. */
#include "launcher/sweep/sweep.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/journal/log.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

bool sweep_better (const struct sweep *s, double a, double b)
{
    if (!isfinite (a) || !isfinite (b))
        return isfinite (a) && !isfinite (b);
    return s->exp->search.smaller_is_better ? a < b : a > b;
}

struct trial *sweep_trial (const struct sweep *s, long number)
{
    return number >= 1 && number <= s->ntrials ? &s->trials[number - 1] : NULL;
}

/* ---- what the experiment says ---- */

bool sweep_wants_reports (const struct sweep *s)
{
    return experiment_needs (s->exp) & HAS_REPORTS;
}

bool sweep_is_late (const struct sweep *s)
{
    return s->exp->max_hours > 0
           && (double)time (NULL) > s->created + s->exp->max_hours * 3600;
}

size_t sweep_metrics (const struct sweep *s)
{
    return s->exp->nmetrics > 1 ? s->exp->nmetrics : 1;
}

const char *sweep_metric (const struct sweep *s, size_t i)
{
    return s->exp->nmetrics > 1 ? s->exp->metrics[i] : s->exp->metric;
}

/* ---- the folder ---- */

int sweep_sync (struct sweep *s, struct slurmdl_error *err)
{
    return log_sync (s->log, sweep_apply, s, err);
}

int sweep_put (struct sweep *s,
               struct event *events,
               size_t n,
               struct slurmdl_error *err)
{
    int rv;

    for (size_t i = 0; i < n; i++)
        events[i] = event_now (events[i]);
    rv = log_append (s->log, events, n, err);
    for (size_t i = 0; i < n && rv == 0; i++)
        rv = sweep_apply (&events[i], s, err);
    if (rv == 1 && sweep_sync (s, err) < 0)
        return -1;
    return rv;
}

int sweep_insist (struct sweep *s,
                  struct event event,
                  bool (*still) (const struct sweep *s, const void *arg),
                  const void *arg,
                  struct slurmdl_error *err)
{
    int rv = 1;

    while (rv == 1 && (!still || still (s, arg)))
        rv = sweep_put (s, &event, 1, err);
    return rv;
}

struct sweep *
sweep_open (const char *dir, struct problems *p, struct slurmdl_error *err)
{
    struct sweep *s = calloc (1, sizeof (*s));
    char path[PATH_MAX];

    if (!s || !(s->dir = strdup (dir))) {
        errorf (err, "out of memory");
        goto fail;
    }
    snprintf (path, sizeof (path), "%s/experiment.conf", dir);
    if (!(s->exp = experiment_read (path, p))) {
        errorf (err, "%s: cannot be used", path);
        goto fail;
    }
    snprintf (path, sizeof (path), "%s/log", dir);
    if (!(s->log = log_create (path, err)) || sweep_sync (s, err) < 0)
        goto fail;
    return s;
fail:
    sweep_close (s);
    return NULL;
}

void sweep_close (struct sweep *s)
{
    int e = errno;

    if (!s)
        return;
    for (long i = 0; i < s->ntrials; i++) {
        struct trial *t = &s->trials[i];
        json_decref (t->hparams);
        free (t->x);
        free (t->values);
        free (t->milestones);
        free (t->why);
        free (t->owner);
        free (t->host);
        free (t->gpus);
    }
    for (size_t i = 0; i < s->nsubmits; i++)
        free (s->submits[i].job);
    for (size_t i = 0; i < s->nhosts; i++) {
        free (s->hosts[i].name);
        free (s->hosts[i].why);
    }
    free (s->submits);
    free (s->deed.by);
    free (s->hosts);
    strings_free (s->labels);
    strings_free (s->retired);
    free (s->trials);
    free (s->history);
    searcher_destroy (s->searcher);
    log_destroy (s->log);
    experiment_destroy (s->exp);
    free (s->dir);
    free (s);
    errno = e;
}

/* ---- views ---- */

const char *sweep_state_name (enum sweep_state state)
{
    static const char *const names[] = {
        "new", "running", "paused", "stopped", "killed", "completed", "failed",
    };
    return names[state];
}

const json_t *trial_hparams (const struct sweep *s, const struct trial *t)
{
    struct trial *keep = &s->trials[t - s->trials];

    if (!keep->hparams && keep->x)
        keep->hparams = hparams_json (s->exp, keep->x);
    return keep->hparams;
}

const char *trial_state_name (const struct sweep *s, const struct trial *t)
{
    switch (t->state) {
    case TRIAL_OPEN:
        return sweep_has_ended (s) ? "ended early" : "open";
    case TRIAL_FAILED:
        return "failed";
    case TRIAL_REJECTED:
        return "rejected";
    case TRIAL_PAUSED:
        break;
    }
    if (t->stopped)
        return "stopped early";
    if (t->length >= s->exp->search.max_length)
        return "completed";
    return sweep_has_ended (s) ? "ended early" : "paused";
}

long trial_milestone (const struct trial *t, int64_t length)
{
    for (size_t i = t->nmilestones; i > 0; i--)
        if (t->milestones[i - 1].length == length)
            return t->milestones[i - 1].attempt;
    return 0;
}

struct milestone trial_last (const struct trial *t)
{
    static const struct milestone none = { 0, 0 };

    return t->nmilestones ? t->milestones[t->nmilestones - 1] : none;
}
