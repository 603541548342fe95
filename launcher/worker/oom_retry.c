/* SPDX-License-Identifier: Apache-2.0 */
/* With what an attempt that ran out of memory is tried again. */
#include "launcher/worker/oom_retry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/hparams.h"
#include "launcher/config/log_policy.h"
#include "launcher/config/on_oom.h"
#include "launcher/sweep/queries.h"
#include "launcher/worker/memory.h"

static void add_reason (struct failure_class *v, const char *text)
{
    size_t n = strlen (v->why);
    size_t room = sizeof (v->why) - strlen (text) - 1;

    snprintf (v->why + (n < room ? n : room), strlen (text) + 1, "%s", text);
    policy_text (v->why);
}

static bool searcher_takes (const struct sweep *s, long trial, const double *x)
{
    struct searcher *copy = searcher_copy (s->searcher);
    bool takes = copy && searcher_move (copy, trial, x) == 0;

    searcher_destroy (copy);
    return takes;
}

/* "batch = 32 instead of 64" */
static void say_half (const struct hparam *h, const json_t *before, struct segment_report *r)
{
    char *old = hparams_text (before, h->path);
    char *new = hparams_text (r->retry.hparams, h->path);
    char text[256];

    snprintf (text, sizeof (text), "; tried again with %.100s = %.32s instead of %.32s", h->path,
              new ? new : "?", old ? old : "?");
    add_reason (&r->verdict, text);
    free (old);
    free (new);
}

/* A trial that has a result stays at its point, which that belongs to. */
static void halve (const struct sweep *s, long trial, struct segment_report *r)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    size_t n = s->exp->nparams;
    double *x = calloc (n + 1, sizeof (*x));
    const struct hparam *h;

    if (!x || t->length > 0)
        goto none;
    if (n > 0)
        memcpy (x, t->x, n * sizeof (*x));
    if (!(h = on_oom_halve (s->exp, x)) || !searcher_takes (s, trial, x))
        goto none;
    r->retry.x = x;
    r->retry.hparams = hparams_json (s->exp, x);
    r->verdict.free = true;
    say_half (h, trial_hparams (s, t), r);
    return;
none:
    free (x);
}

static void give_more (const struct worker *w, struct segment_report *r)
{
    r->retry.memory = memory_to_retry (w, r->memory, r->peak);
    if (r->retry.memory == 0)
        return;
    memory_add_reason (r->verdict.why, sizeof (r->verdict.why), r->memory, r->retry.memory);
    r->verdict.free = true;
}

void oom_retry_decide (const struct worker *w, long trial, struct segment_report *r)
{
    if (r->outcome != OUTCOME_FAILED || r->verdict.last)
        return;
    if (r->verdict.oom == OOM_GPU)
        halve (w->sweep, trial, r);
    else if (r->verdict.oom == OOM_HOST)
        give_more (w, r);
}

void oom_retry_free (struct segment_report *r)
{
    free (r->retry.x);
    json_decref (r->retry.hparams);
    r->retry.x = NULL;
    r->retry.hparams = NULL;
}
