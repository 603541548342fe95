/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what comes next: begin segments, end the sweep. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/peer.h"
#include "launcher/worker.h"
#include "runtime/error.h"

static const char *by (const struct worker *w)
{
    return peer_self (w->peer)->slot;
}

/* ---- events ---- */

static json_t *begin_event (const struct worker *w,
                            const struct search_op *op,
                            const double *x)
{
    const struct experiment *e = w->sweep->exp;
    json_t *event = event_create ("begin", by (w));
    json_t *point;

    json_object_set_new (event, "trial", json_integer (op->trial));
    json_object_set_new (event, "length", json_integer (op->length));
    if (!op->fresh)
        return event;
    if (op->from) {
        json_object_set_new (event, "from", json_integer (op->from));
        json_object_set_new (
            event, "from_length", json_integer (op->from_length));
    }
    point = json_array ();
    for (size_t i = 0; i < e->nparams; i++)
        json_array_append_new (point, number_json (x[i]));
    json_object_set_new (event, "x", point);
    json_object_set_new (event, "hparams", hparams_json (e, x));
    return event;
}

/* The experiment failed if no trial gave a result, or may still give one. */
static json_t *end_event (struct worker *w)
{
    json_t *event = event_create ("end", by (w));
    const char *state = w->sweep->ntrials ? "failed" : "completed";

    for (long i = 1; i <= w->sweep->ntrials; i++)
        if (sweep_trial (w->sweep, i)->state == TRIAL_OPEN
            || sweep_trial (w->sweep, i)->state == TRIAL_PAUSED)
            state = "completed";
    json_object_set_new (event, "state", json_string (state));
    return event;
}

static int put_one (struct worker *w, json_t *event, struct slurmdl_error *err)
{
    json_t *events = json_array ();

    json_array_append_new (events, event);
    return sweep_put (w->sweep, events, err) < 0 ? -1 : 1;
}

/* ---- what the searcher says ---- */

/* At the start one entry decides for all workers, or they would queue. */
static long decisions_wanted (const struct worker *w)
{
    return w->sweep->ntrials == 0 ? (long)w->sweep->exp->workers : 1;
}

static enum search_answer decide_some (struct worker *w, json_t *events)
{
    struct searcher *s = searcher_copy (w->sweep->searcher);
    double *x = calloc (w->sweep->exp->nparams + 1, sizeof (*x));
    enum search_answer answer = SEARCH_WAIT;
    struct search_op op;

    for (long n = decisions_wanted (w); s && x && n > 0; n--) {
        answer = searcher_ask (s, &op, x);
        if (answer != SEARCH_RUN || searcher_begin (s, &op, x) < 0)
            break;
        json_array_append_new (events, begin_event (w, &op, x));
    }
    searcher_destroy (s);
    free (x);
    return answer;
}

/* ---- what the user's program says ---- */

static bool is_custom (const struct worker *w)
{
    const struct searcher_kind *k = searcher_kinds;

    while (k->name && strcmp (k->name, w->sweep->exp->search.name))
        k++;
    return k->needs & IS_CUSTOM;
}

/* The program may have thought for long: the point is still good, if the
 * searcher still wants one.  Returns as sweep_put(), 0 if it does not.
 */
static int
put_point (struct worker *w, const double *x, struct slurmdl_error *err)
{
    struct searcher *s = searcher_copy (w->sweep->searcher);
    double *y = calloc (w->sweep->exp->nparams + 1, sizeof (*y));
    json_t *events = json_array ();
    struct search_op op;
    int rv = 0;

    if (s && y && searcher_ask (s, &op, y) == SEARCH_RUN
        && searcher_begin (s, &op, x) == 0)
        json_array_append_new (events, begin_event (w, &op, x));
    if (w->sweep->state == SWEEP_RUNNING && json_array_size (events))
        rv = sweep_put (w->sweep, events, err);
    else
        json_decref (events);
    searcher_destroy (s);
    free (y);
    return rv;
}

static int
decide_custom (struct worker *w, double *x, struct slurmdl_error *err)
{
    struct search_op op;
    int answer = (int)searcher_ask (w->sweep->searcher, &op, x);
    int rv = 1;

    if (answer == SEARCH_RUN)
        answer = custom_ask (w, x, err);
    if (answer == SEARCH_DONE)
        return put_one (w, end_event (w), err);
    if (answer != SEARCH_RUN)
        return answer < 0 ? -1 : 0;
    while (rv == 1)
        rv = put_point (w, x, err);
    return rv < 0 ? -1 : 1;
}

/* ---- either ---- */

static int ask_program (struct worker *w, struct slurmdl_error *err)
{
    double *x = calloc (w->sweep->exp->nparams + 1, sizeof (*x));
    int rv = x ? decide_custom (w, x, err) : errorf (err, "out of memory");

    free (x);
    return rv;
}

static int ask_searcher (struct worker *w, struct slurmdl_error *err)
{
    json_t *events = json_array ();
    enum search_answer answer = decide_some (w, events);

    if (answer == SEARCH_DONE && json_array_size (events) == 0)
        json_array_append_new (events, end_event (w));
    if (json_array_size (events) == 0) {
        json_decref (events);
        return 0;
    }
    return sweep_put (w->sweep, events, err) < 0 ? -1 : 1;
}

int worker_decide (struct worker *w, struct slurmdl_error *err)
{
    return is_custom (w) ? ask_program (w, err) : ask_searcher (w, err);
}

/* ---- the time limit ---- */

/* Clocks need not agree: the event counts, whoever puts it first. */
bool worker_is_late (const struct worker *w)
{
    const struct sweep *s = w->sweep;

    return s->expired
           || (s->exp->max_hours > 0
               && (double)time (NULL) > s->created + s->exp->max_hours * 3600);
}

static bool is_trained (struct worker *w, long trial)
{
    const struct trial *t = sweep_trial (w->sweep, trial);

    return t->state == TRIAL_OPEN && peer_claimed (w->peer, trial, t->over + 1)
           && !peer_claim_dead (
               w->peer, trial, t->over + 1, w->sweep->exp->lease);
}

/* No segment begins any more; the end comes when none is being trained. */
int worker_wind_up (struct worker *w, struct slurmdl_error *err)
{
    if (!w->sweep->expired)
        return put_one (w, event_create ("expire", by (w)), err);
    for (long i = 1; i <= w->sweep->ntrials; i++)
        if (is_trained (w, i))
            return 0;
    return put_one (w, end_event (w), err);
}
