/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what comes next: begin segments, end the sweep. */
#include "launcher/worker/decide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/hparams.h"
#include "launcher/config/queries.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/snapshot.h"
#include "launcher/sweep/sweep.h"
#include "launcher/worker/budget.h"
#include "launcher/worker/custom_searcher.h"
#include "launcher/worker/memory.h"
#include "launcher/worker/offered_results.h"
#include "runtime/base/error.h"

static bool decides_by_program (const struct worker *w)
{
    return experiment_needs (w->sweep->exp) & IS_CUSTOM;
}

/* ---- events ---- */

/* A segment that begins, for its attempt 'owner' (NULL: for anybody). */
static struct event begin_event (const struct worker *w, const struct search_op *op, double *x,
                                 const char *owner)
{
    const struct experiment *e = w->sweep->exp;
    struct event event = {
        .op = EVENT_BEGIN,
        .by = w->slot,
        .trial = op->trial,
        .length = op->length,
        .owner = owner,
    };

    if (op->fresh) {
        event.x = x;
        event.nx = e->nparams;
        event.hparams = hparams_json (e, x);
        event.from = op->from;
        event.from_length = op->from_length;
    }
    return event;
}

static bool has_finite_result (const struct sweep_trial *t)
{
    for (size_t i = 0; t->state == TRIAL_PAUSED && i < t->nmilestones; i++)
        if (isfinite (t->milestones[i].metric))
            return true;
    return false;
}

/* The experiment failed if no trial gave a finite result, or may still give
 * one; it is partial if too many failed.
 */
static struct event end_event (const struct worker *w)
{
    struct event event = { .op = EVENT_END, .by = w->slot };

    event.state = w->sweep->ntrials ? "failed" : "completed";
    for (long i = 1; i <= w->sweep->ntrials; i++)
        if (sweep_trial (w->sweep, i)->state == TRIAL_OPEN
            || has_finite_result (sweep_trial (w->sweep, i)))
            event.state = "completed";
    if (!strcmp (event.state, "completed")
        && sweep_failed_trials (w->sweep) > sweep_max_failed (w->sweep))
        event.state = "partial";
    return event;
}

static enum turn put_one (struct worker *w, struct event event, struct slurmdl_error *err)
{
    int rv = worker_publish (w, &event, 1, err);

    w->closes |= rv == 0 && event.op == EVENT_END;
    return rv < 0 ? TURN_FAILED : TURN_DONE;
}

/* ---- what the searcher says ---- */

/* At the start one entry decides for all workers, or they would queue. */
static size_t decisions_wanted (const struct worker *w)
{
    return w->sweep->ntrials == 0 ? (size_t)w->sweep->exp->workers : 1;
}

struct decisions {
    struct event *events;
    size_t n;
    double *x; /* a row each */
};

static void decisions_free (struct decisions *d)
{
    for (size_t i = 0; i < d->n; i++)
        json_decref (d->events[i].hparams);
    free (d->events);
    free (d->x);
}

/* Of the n-th that begins; NULL: who is to claim it.  A longer segment than
 * one that it has time for is nobody's.
 */
static const char *owner_of (const struct worker *w, const struct offers *others, size_t n,
                             const struct search_op *op)
{
    if (n == 0)
        return worker_nonce (w);
    return others && op->length <= others->list[n - 1].length ? others->list[n - 1].nonce : NULL;
}

/* The first is for this worker, the next ones for those of the offers. */
static int decide_some (const struct worker *w, struct searcher *s, const struct offers *others,
                        struct decisions *d, enum search_answer *answer)
{
    size_t most = others ? 1 + others->n : decisions_wanted (w);
    size_t dims = w->sweep->exp->nparams;
    struct search_op op;

    *answer = SEARCH_WAIT;
    d->events = calloc (most, sizeof (*d->events));
    d->x = calloc (most * dims + 1, sizeof (*d->x));
    if (!d->events || !d->x)
        return -1;
    while (d->n < most) {
        double *x = d->x + d->n * dims;
        *answer = searcher_ask (s, &op, x);
        if (*answer != SEARCH_RUN || searcher_begin (s, &op, x) < 0)
            break;
        d->events[d->n] = begin_event (w, &op, x, owner_of (w, others, d->n, &op));
        d->n++;
    }
    return 0;
}

static bool fits (const struct worker *w, const struct event *begin)
{
    return budget_fits (w, (long)begin->trial, begin->length);
}

static enum turn ask_searcher (struct worker *w, struct slurmdl_error *err)
{
    struct searcher *s = sweep_snapshot (w->sweep);
    struct decisions d = { 0 };
    enum search_answer answer;
    bool decided = s && decide_some (w, s, NULL, &d, &answer) == 0;
    enum turn turn = TURN_IDLE;

    sweep_end_snapshot (w->sweep, s);
    if (!decided) {
        errorf (err, "out of memory");
        turn = TURN_FAILED;
    } else if (d.n > 0 && !memory_fits (w)) {
        turn = TURN_IDLE;
    } else if (d.n > 0 && !fits (w, &d.events[0])) {
        w->out_of_time = true;
    } else if (d.n > 0) {
        turn = worker_publish (w, d.events, d.n, err) < 0 ? TURN_FAILED : TURN_DONE;
    } else if (answer == SEARCH_DONE) {
        turn = put_one (w, end_event (w), err);
    }
    decisions_free (&d);
    return turn;
}

/* ---- a result, and what follows from it, in one entry ---- */

static bool anything_open (const struct sweep *s, long but)
{
    for (long i = 0; i < s->nopen; i++)
        if (s->open[i] != but && !sweep_trial (s, s->open[i])->owner)
            return true;
    return false;
}

/* What the searcher learns of a result. */
static int observe (const struct worker *w, struct searcher *s, const struct event *result)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, (long)result->trial);

    searcher_spend (s, (long)result->trial, t->spent + result->seconds);
    return searcher_observe (s, (long)result->trial, result->length,
                             result->nmetrics ? result->metrics : &result->metric);
}

/* The searcher as it will be when the results are in; NULL if one does not fit.
 */
static struct searcher *foresee (const struct worker *w, const struct event *results, size_t n)
{
    struct searcher *s = sweep_snapshot (w->sweep);
    int rv = s ? 0 : -1;

    for (size_t i = 0; i < n && rv == 0; i++)
        rv = observe (w, s, &results[i]);
    if (rv == 0)
        return s;
    sweep_end_snapshot (w->sweep, s);
    return NULL;
}

static bool is_goal (const struct worker *w, const struct event *results, size_t n)
{
    while (n > 0)
        if (sweep_is_goal (w->sweep, results[--n].metric))
            return true;
    return false;
}

/* What follows the results, in 'd': this worker must have something to do. */
static bool decide_next (struct worker *w, const struct event *results, const struct offers *others,
                         struct decisions *d)
{
    size_t n = 1 + others->n;
    enum search_answer answer;
    struct searcher *s = NULL;
    bool goes_on = worker_may_begin (w) && !is_goal (w, results, n) && w->sweep->ntrials > 0
                   && !decides_by_program (w) && !anything_open (w->sweep, results[0].trial)
                   && (s = foresee (w, results, n)) && decide_some (w, s, others, d, &answer) == 0
                   && d->n > 0 && memory_fits (w) && fits (w, &d->events[0]);

    sweep_end_snapshot (w->sweep, s);
    return goes_on;
}

int worker_publish_result (struct worker *w, struct event *result, struct slurmdl_error *err)
{
    struct event events[2 * (1 + OFFERS_MAX)] = { *result };
    struct decisions d = { 0 };
    struct offers others;
    size_t n = 1;
    int rv;

    offers_collect (w, (long)result->trial, &others);
    for (size_t i = 0; i < others.n; i++)
        events[n++] = others.list[i].result;
    if (decide_next (w, events, &others, &d))
        for (size_t i = 0; i < d.n; i++)
            events[n++] = d.events[i];
    else
        n = 1;
    /* who trains next has the entry synced meanwhile */
    log_defer (w->sweep->log, n > 1);
    rv = worker_publish (w, events, n, err);
    log_defer (w->sweep->log, false);
    if (rv == 1 && n > 1)
        offer_put (w, (struct event[]){ *result, d.events[0] });
    else if (rv == 0)
        w->rivals = w->offers || others.n > 0;
    decisions_free (&d);
    offers_free (&others);
    return rv;
}

/* ---- what the user's program says ---- */

/* The program may have thought for long: the point is still good, if the
 * searcher still wants one.  Returns as sweep_publish(), 0 if it does not.
 */
static int put_point (struct worker *w, double *x, struct slurmdl_error *err)
{
    struct searcher *s = sweep_snapshot (w->sweep);
    double *y = calloc (w->sweep->exp->nparams + 1, sizeof (*y));
    struct search_op op;
    bool wanted = s && y && searcher_ask (s, &op, y) == SEARCH_RUN
                  && searcher_begin (s, &op, x) == 0 && w->sweep->state == SWEEP_RUNNING;
    int rv = 0;

    sweep_end_snapshot (w->sweep, s);
    free (y);
    if (wanted) {
        struct event event = begin_event (w, &op, x, worker_nonce (w));
        rv = worker_publish (w, &event, 1, err);
        json_decref (event.hparams);
    }
    return rv;
}

static enum turn decide_custom (struct worker *w, double *x, struct slurmdl_error *err)
{
    struct search_op op;
    int answer = (int)searcher_ask (w->sweep->searcher, &op, x);
    int rv = 1;

    if (answer == SEARCH_RUN && !memory_fits (w))
        return TURN_IDLE;
    if (answer == SEARCH_RUN)
        answer = custom_ask (w, x, err);
    if (answer == SEARCH_DONE)
        return put_one (w, end_event (w), err);
    if (answer != SEARCH_RUN)
        return answer < 0 ? TURN_FAILED : TURN_IDLE;
    /* the same program, with the same seed, answers another worker the same:
     * it is asked again, with what it is told now
     */
    while (rv == 1 && !custom_is_taken (w, x))
        rv = put_point (w, x, err);
    return rv < 0 ? TURN_FAILED : TURN_DONE;
}

static enum turn ask_program (struct worker *w, struct slurmdl_error *err)
{
    double *x = calloc (w->sweep->exp->nparams + 1, sizeof (*x));
    enum turn turn = TURN_FAILED;

    if (x)
        turn = decide_custom (w, x, err);
    else
        errorf (err, "out of memory");
    free (x);
    return turn;
}

/* ---- either ---- */

enum turn worker_decide (struct worker *w, struct slurmdl_error *err)
{
    return decides_by_program (w) ? ask_program (w, err) : ask_searcher (w, err);
}

/* ---- the goal ---- */

enum turn worker_finish (struct worker *w, struct slurmdl_error *err)
{
    return put_one (w, end_event (w), err);
}

/* ---- the time limit ---- */

/* No further segment begins; the sweep ends when none is being trained. */
enum turn worker_wind_up (struct worker *w, struct slurmdl_error *err)
{
    if (!w->sweep->expired)
        return put_one (w, (struct event){ .op = EVENT_EXPIRE, .by = w->slot }, err);
    for (long i = 0; i < w->sweep->nopen; i++)
        if (worker_trains (w, w->sweep->open[i]))
            return TURN_IDLE;
    return put_one (w, end_event (w), err);
}
