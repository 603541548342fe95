/* SPDX-License-Identifier: Apache-2.0 */
/* Replay what users request of an experiment. */
#include "launcher/sweep/requests.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/faults.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/snapshot.h"
#include "launcher/sweep/state_edit.h"
#include "launcher/sys/strings.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

int apply_pause (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)err;
    state_set_text (&s->cause.why, e->why);
    s->cause.trial = (long)e->trial;
    s->cause.attempt = (long)e->attempt;
    return 0;
}

/* What failed by a fault of all is tried as often as if it had not. */
int apply_resume (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    if (e->code && s->code && s->nresults == 0) {
        s->is_mended = true;
        state_set_text (&s->code, e->code);
        if (!s->code)
            return errorf (err, "out of memory");
    }
    for (long i = 0; i < s->nopen && s->cause.why; i++)
        sweep_trial (s, s->open[i])->fails = 0;
    faults_forget (s);
    return 0;
}

int apply_continue (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct search_config *c = &s->exp->search;

    if (sweep_unshare_searcher (s) < 0
        || searcher_extend (&s->searcher, (long)e->max_trials, e->max_length, 0) < 0)
        return errno == ENOMEM ? errorf (err, "out of memory") : 1;
    if (e->max_trials)
        c->max_trials = (long)e->max_trials;
    if (e->max_length)
        c->max_length = e->max_length;
    s->expired = false;
    s->reached = false;
    s->archived = false;
    faults_forget (s);
    return 0;
}

/* Its segment is open again, as if it had not failed. */
int apply_retry (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = sweep_trial (s, (long)e->trial);

    if (!t || t->state != TRIAL_FAILED)
        return 0;
    if (searcher_revive (s->searcher, (long)e->trial) < 0)
        return 1;
    faults_forget (s);
    t->state = TRIAL_OPEN;
    conditions_apply (&t->conditions,
                      &(struct life_event){ LIFE_REVIVED, e->time, "Retried", NULL });
    t->fails = t->losts = 0;
    t->spent = 0;
    if (state_add_open (s, (long)e->trial, err) < 0)
        return -1;
    return state_add_history (s, (long)e->trial, err);
}

int apply_submit (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct submit *list;
    char *job;

    if (!e->job || !*e->job)
        return 0;
    list = array_grow (s->submits, s->nsubmits, sizeof (*list));
    job = strdup (e->job);
    if (list)
        s->submits = list;
    if (!list || !job) {
        free (job);
        return errorf (err, "out of memory");
    }
    list[s->nsubmits++] = (struct submit){ job, (long)e->first, (long)e->last, e->time, e->memory };
    return 0;
}

int apply_scale (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    const char *p = e->slots ? e->slots : "";

    s->wanted = (long)e->workers;
    s->starts++;
    while (*(p += strspn (p, " "))) {
        size_t len = strcspn (p, " ");
        if (strings_add_part (&s->retired, p, len) < 0)
            return errorf (err, "out of memory");
        p += len;
    }
    return 0;
}

static char **find_text (char **list, const char *text)
{
    for (; list && *list; list++)
        if (!strcmp (*list, text))
            return list;
    return NULL;
}

bool sweep_retires (const struct sweep *s, const char *slot)
{
    return find_text (s->retired, slot);
}

int apply_label (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    char **at = e->label ? find_text (s->labels, e->label) : NULL;

    if (!e->label || !*e->label)
        return 0;
    if (!e->off)
        return at || strings_add (&s->labels, e->label) == 0 ? 0 : errorf (err, "out of memory");
    if (at) {
        free (*at);
        do
            at[0] = at[1];
        while (*at++);
    }
    return 0;
}

int apply_archive (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)err;
    s->archived = !e->off;
    return 0;
}

void request_note (struct sweep *s, const struct event *e)
{
    static const char *const actions[EVENT_OPS] = {
        [EVENT_CREATE] = "created",
        [EVENT_PAUSE] = "paused",
        [EVENT_RESUME] = "resumed",
        [EVENT_STOP] = "stopped",
        [EVENT_KILL] = "killed",
        [EVENT_CONTINUE] = "continued",
        [EVENT_RETRY] = "trial retried",
        [EVENT_SCALE] = "scaled",
        [EVENT_LABEL] = "labelled",
        [EVENT_ARCHIVE] = "archived",
        [EVENT_EXCLUDE] = "excluded a machine",
    };

    if (!actions[e->op])
        return;
    s->last_action.what = actions[e->op];
    s->last_action.undone = e->off;
    s->last_action.time = e->time;
    state_set_text (&s->last_action.by, e->by);
}
