/* SPDX-License-Identifier: Apache-2.0 */
/* Tell somebody of the end of an experiment, of failures, of lines in a log. */
#include "launcher/notify/notify.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/log_policy.h"
#include "launcher/notify/send.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"

static bool is_wanted (const struct experiment *e)
{
    return e->notify.command || e->notify.mail || e->notify.webhook;
}

static bool is_on (const struct experiment *e, const char *event)
{
    for (char **on = e->notify.on; on && *on; on++)
        if (!strcmp (*on, event))
            return true;
    return !e->notify.on;
}

/* ---- once ---- */

/* Whether this process is the one that tells it. */
static bool is_first (const struct sweep *s, const char *marker)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];
    int rv;

    snprintf (path, sizeof (path), "%s/notified", s->dir);
    if ((rv = folder_create (path, &err)) == 0) {
        snprintf (path, sizeof (path), "%s/notified/%s", s->dir, marker);
        rv = publish_if_absent (path, "", 0, &err);
    }
    if (rv < 0)
        complain ("nobody is notified: %s", err.text);
    return rv == 0;
}

/* ---- what ---- */

static void best_text (const struct sweep *s, char *buf, size_t size)
{
    char best[256];

    sweep_best_text (s, NULL, best, sizeof (best));
    snprintf (buf, size, "%s%s", *best ? "; best " : "", best);
}

static json_t *best_json (const struct sweep *s)
{
    long trial = sweep_best (s);
    struct sweep_result r = point_result (s, trial_point (s, trial), 0);
    json_t *o = json_pack ("{s:s, s:f, s:I}",
                           "metric",
                           s->exp->metric,
                           "value",
                           r.value,
                           "trial",
                           (json_int_t)trial);

    if (o && s->exp->search.repeats > 1) {
        json_object_set_new (o, "n", json_integer (r.n));
        json_object_set_new (o, "point", json_integer (trial_point (s, trial)));
    }
    return o;
}

static json_t *
notice_json (const struct sweep *s, const char *event, const char *text)
{
    json_t *o = json_pack ("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I}",
                           "text",
                           text,
                           "content",
                           text,
                           "event",
                           event,
                           "experiment",
                           sweep_folder_name (s),
                           "folder",
                           s->dir,
                           "state",
                           sweep_state_name (s->state),
                           "trials",
                           (json_int_t)s->ntrials,
                           "failed",
                           (json_int_t)sweep_failed_trials (s));

    if (o && sweep_best (s))
        json_object_set_new (o, "best", best_json (s));
    return o;
}

static void tell (const struct sweep *s,
                  const char *event,
                  const char *marker,
                  const char *what)
{
    char subject[200], best[300], text[1024];
    struct notice n = { .event = event, .subject = subject, .text = text };
    json_t *o;

    if (!is_wanted (s->exp) || !is_first (s, marker))
        return;
    best_text (s, best, sizeof (best));
    snprintf (
        subject, sizeof (subject), "dl: %s: %s", sweep_folder_name (s), event);
    snprintf (text,
              sizeof (text),
              "%s: %s; %ld trials%s",
              sweep_folder_name (s),
              what,
              s->ntrials,
              best);
    /* others may have named the folder: a line break begins a header */
    policy_text (subject);
    policy_text (text);
    if ((o = notice_json (s, event, text)))
        n.json = json_string_of (o, JSON_COMPACT | JSON_ENSURE_ASCII);
    json_decref (o);
    if (n.json)
        notice_send (s->exp, &n);
    free (n.json);
}

/* ---- when ---- */

/* Entries of the log tell one end from the next one, after dl continue. */
void notify_end (const struct sweep *s)
{
    const char *state = sweep_state_name (s->state);
    bool failed = s->state == SWEEP_FAILED || s->state == SWEEP_PARTIAL;
    bool asked = s->state == SWEEP_STOPPED || s->state == SWEEP_KILLED;
    const char *by =
        asked && s->last_action.what && !strcmp (s->last_action.what, state)
            ? s->last_action.by
            : NULL;
    char marker[64], what[256];

    if (!is_on (s->exp, "end") && !(failed && is_on (s->exp, "failure")))
        return;
    if (asked) /* trials may still be ending */
        snprintf (marker, sizeof (marker), "%s-%.3f", state, s->asked);
    else
        snprintf (
            marker, sizeof (marker), "end-%ld-%ld", s->ntrials, s->nhistory);
    snprintf (what,
              sizeof (what),
              "%s%s%.100s, %ld of its trials failed",
              state,
              by ? " by " : "",
              by ? by : "",
              sweep_failed_trials (s));
    tell (s, failed ? "failure" : "end", marker, what);
}

void notify_fault (const struct sweep *s)
{
    char marker[64], what[600];

    if (!is_on (s->exp, "failure"))
        return;
    snprintf (marker,
              sizeof (marker),
              "paused-%ld-%ld",
              s->cause.trial,
              s->cause.attempt);
    snprintf (what,
              sizeof (what),
              "paused, as all attempts fail in the same way: %.400s",
              s->cause.why ? s->cause.why : "");
    tell (s, "failure", marker, what);
}

static void notify_failed (const struct sweep *s, long trial)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    char what[600];

    if (t->state != TRIAL_FAILED || !is_on (s->exp, "failure"))
        return;
    snprintf (what,
              sizeof (what),
              "trial %ld failed: %.400s",
              trial,
              t->why ? t->why : "");
    tell (s, "failure", "failed", what);
}

static bool is_told (const struct sweep *s, int pattern)
{
    char path[PATH_MAX];

    snprintf (
        path, sizeof (path), "%s/notified/pattern-%d", s->dir, pattern + 1);
    return access (path, F_OK) == 0;
}

static void notify_patterns (const struct sweep *s, long trial, long attempt)
{
    char **patterns = s->exp->notify.patterns;
    char path[PATH_MAX], marker[64], what[400];

    snprintf (path,
              sizeof (path),
              "%s/trials/%04ld/a.%ld/log",
              s->dir,
              trial,
              attempt);
    for (int i = 0; patterns && patterns[i]; i++) {
        struct log_policy policy = { .pattern = patterns[i] };
        char found[1][POLICY_LINE];
        if (is_told (s, i) || policies_search (&policy, 1, path, found) <= 0)
            continue;
        snprintf (marker, sizeof (marker), "pattern-%d", i + 1);
        snprintf (what, sizeof (what), "trial %ld: %s", trial, found[0]);
        tell (s, "pattern", marker, what);
    }
}

void notify_attempt (const struct sweep *s, long trial, long attempt)
{
    if (!is_wanted (s->exp) || sweep_settle (s, NULL) < 0)
        return;
    notify_failed (s, trial);
    notify_patterns (s, trial, attempt);
}

/* ---- while it runs ---- */

enum { EVERY = 5 /* s */, EFFORT = 20 };

static bool anything_to_tell (const struct sweep *s)
{
    for (int i = 0; s->exp->notify.patterns && s->exp->notify.patterns[i]; i++)
        if (!is_told (s, i))
            return true;
    return false;
}

bool notify_unwatch (struct notify_watch *w)
{
    if (w->child == 0 || waitpid (w->child, NULL, WNOHANG) == 0)
        return w->child != 0;
    w->child = 0;
    w->next = monotonic () + fmax (EVERY, EFFORT * (monotonic () - w->begun));
    return false;
}

/* A long log takes a while, and so may what is told: the worker cannot wait. */
void notify_watch (const struct sweep *s,
                   long trial,
                   long attempt,
                   struct notify_watch *w)
{
    double now = monotonic ();

    if (!s->exp->notify.patterns || !is_wanted (s->exp) || notify_unwatch (w)
        || now < w->next)
        return;
    w->begun = now;
    w->next = now + EVERY;
    if (!anything_to_tell (s))
        return;
    if ((w->child = subprocess_fork (0)) < 0)
        w->child = 0;
    else if (w->child == 0) {
        notify_patterns (s, trial, attempt);
        _exit (0);
    }
}
