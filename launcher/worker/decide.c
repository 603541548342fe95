/* SPDX-License-Identifier: Apache-2.0 */
/* Decide what comes next: begin segments, publish results with what follows, end the sweep. */
#include "launcher/config/experiment.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/space.h"
#include "launcher/worker/worker_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/config/hparams.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/snapshot.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* ---- results that other workers offer ---- */

enum { OFFER_MAX = 1 << 20, NONCE = 32 };

static const char offer_suffix[] = ".offer";

static void offer_path (char path[PATH_MAX], const struct worker *w, const char *nonce)
{
    snprintf (path, PATH_MAX, "%.3900s/workers/%.32s%s", w->sweep->dir, nonce, offer_suffix);
}

/* Parse a line as JSON and advance '*text' to the next one. */
static json_t *next_offer_line (char **text)
{
    char *line = strsep (text, "\n");

    return line ? json_loads (line, 0, NULL) : NULL;
}

/* An offer has two lines: the result, and what its worker would have begun next. */
static int parse_offer (struct offer *o, char *text)
{
    json_t *begin;
    struct event e;

    if ((o->json = next_offer_line (&text)) && event_read (o->json, &o->result) < 0) {
        json_decref (o->json);
        o->json = NULL;
    }
    if ((begin = next_offer_line (&text)) && event_read (begin, &e) == 0) {
        o->length = e.op == EVENT_BEGIN ? e.length : 0;
        event_free (&e);
    }
    json_decref (begin);
    return o->json ? 0 : -1;
}

static bool has_offer_of (const struct offers *o, long trial)
{
    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].result.trial == trial)
            return true;
    return false;
}

/* Whether the log would accept the offer and its worker has claimed the attempt. */
static bool offer_is_good (struct worker *w, const struct offer *o)
{
    const struct event *e = &o->result;
    const char *owner;

    if (e->op != EVENT_RESULT || event_unfit (e) || !isfinite (e->seconds) || e->seconds < 0
        || !sweep_takes_result (w->sweep, e) || (e->nmetrics > 0) != (sweep_metrics (w->sweep) > 1)
        || (e->nmetrics > 0 && e->nmetrics != sweep_metrics (w->sweep)))
        return false;
    owner = worker_owner_of (w, (long)e->trial);
    return owner && !strcmp (owner, o->nonce);
}

/* Check the owner, because others may create a file with this name. */
static bool is_of_same_user (const char *path, uid_t owner)
{
    char worker[PATH_MAX];
    struct stat st;

    snprintf (worker, sizeof (worker), "%.*s", (int)(strlen (path) - strlen (offer_suffix)), path);
    return lstat (worker, &st) == 0 && st.st_uid == owner;
}

/* Whether the worker of the offer died before it could withdraw it. */
static bool offer_is_over (const struct worker *w, const struct offer *o)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, (long)o->result.trial);

    return t && t->over >= o->result.attempt;
}

static void forget_offer (struct offer *o)
{
    event_free (&o->result);
    json_decref (o->json);
}

static void collect_offer (struct worker *w, const char *nonce, long trial, struct offers *all)
{
    struct offer *o = &all->list[all->n];
    char path[PATH_MAX];
    uid_t owner;
    size_t len;
    char *text;

    *o = (struct offer){ .length = 0 };
    snprintf (o->nonce, sizeof (o->nonce), "%.*s", NONCE, nonce);
    offer_path (path, w, o->nonce);
    text = file_read_now (path, OFFER_MAX, &len, &owner, NULL);
    if (text && is_of_same_user (path, owner) && journal_entry_body (text, len)
        && parse_offer (o, text) == 0) {
        if (o->result.trial != trial && !has_offer_of (all, (long)o->result.trial)
            && offer_is_good (w, o))
            all->n++;
        else {
            if (offer_is_over (w, o))
                inside_unlink (path, 0);
            forget_offer (o);
        }
    }
    free (text);
}

static bool is_offer_name (const struct worker *w, const char *name)
{
    char nonce[NONCE + 1];

    snprintf (nonce, sizeof (nonce), "%s", name);
    return strlen (name) > NONCE && !strcmp (name + NONCE, offer_suffix) && peer_is_nonce (nonce)
           && strcmp (nonce, worker_nonce (w));
}

void offers_collect (struct worker *w, long trial, struct offers *o)
{
    char path[PATH_MAX];
    struct dirent *e;
    DIR *dir;
    int fd;

    o->n = 0;
    if (!w->rivals)
        return;
    snprintf (path, sizeof (path), "%.3900s/workers", w->sweep->dir);
    fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    dir = fd < 0 ? NULL : fdopendir (fd);
    while (dir && o->n < OFFERS_MAX && (e = readdir (dir)))
        if (is_offer_name (w, e->d_name))
            collect_offer (w, e->d_name, trial, o);
    if (dir)
        closedir (dir);
}

void offers_free (struct offers *o)
{
    for (size_t i = 0; i < o->n; i++)
        forget_offer (&o->list[i]);
    o->n = 0;
}

/* Use O_EXCL, because others may have created a file with this name. */
void offer_put (struct worker *w, const struct event *events)
{
    char *text = w->offers ? NULL : journal_entry_text (events, 2);
    char path[PATH_MAX];
    int fd = -1;

    w->rivals = true;
    offer_path (path, w, worker_nonce (w));
    if (text)
        fd = inside_open (path, O_WRONLY | O_CREAT | O_EXCL, 0644, NULL);
    if (fd >= 0) {
        w->offers = true;
        dprintf (fd, "%s", text);
        close (fd);
    }
    free (text);
}

void offer_withdraw (struct worker *w)
{
    char path[PATH_MAX];

    if (!w->offers)
        return;
    offer_path (path, w, worker_nonce (w));
    inside_unlink (path, 0);
    w->offers = false;
}

/* ---- what comes next ---- */

static bool decides_by_program (const struct worker *w)
{
    return experiment_needs (w->sweep->exp) & IS_CUSTOM;
}

/* ---- events ---- */

/* Return the event that begins a segment for the worker 'owner', or for any worker if NULL. */
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
        event.nx = e->space->nparams;
        event.hparams = hparams_json (e, x);
        event.from = op->from;
        event.from_length = op->from_length;
    }
    return event;
}

/* A job does not have to log a metric. */
static bool has_result (const struct sweep *s, const struct sweep_trial *t)
{
    for (size_t i = 0; t->state == TRIAL_PAUSED && i < t->nmilestones; i++)
        if (isfinite (t->milestones[i].metric) || s->exp->job->is_given)
            return true;
    return false;
}

/* The experiment failed if no trial has a finite result or may still get one; it is partial if too
 * many trials failed.
 */
static struct event end_event (const struct worker *w)
{
    struct event event = { .op = EVENT_END, .by = w->slot };

    event.state = w->sweep->ntrials ? "failed" : "completed";
    for (long i = 1; i <= w->sweep->ntrials; i++)
        if (sweep_trial (w->sweep, i)->state == TRIAL_OPEN
            || has_result (w->sweep, sweep_trial (w->sweep, i)))
            event.state = "completed";
    if (!strcmp (event.state, "completed")
        && sweep_failed_trials (w->sweep) > sweep_max_failed (w->sweep))
        event.state = "partial";
    return event;
}

static enum turn publish_one (struct worker *w, struct event event, struct slurmdl_error *err)
{
    enum published rv = worker_publish (w, &event, 1, err);

    w->closes |= rv == PUBLISH_DONE && event.op == EVENT_END;
    return rv == PUBLISH_FAILED ? TURN_FAILED : TURN_DONE;
}

/* ---- what the searcher decides ---- */

/* At the start, one entry begins trials for all workers.  Otherwise they would race for each
 * entry.
 */
static size_t decisions_wanted (const struct worker *w)
{
    return w->sweep->ntrials == 0 ? (size_t)w->sweep->exp->resources->workers : 1;
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

/* Return the owner of the n-th new segment, or NULL if any worker may claim it.  A segment longer
 * than its worker has time for has no owner.
 */
static const char *owner_of_segment (const struct worker *w, const struct offers *others, size_t n,
                                     const struct search_op *op)
{
    if (n == 0)
        return worker_nonce (w);
    return others && op->length <= others->list[n - 1].length ? others->list[n - 1].nonce : NULL;
}

/* The first segment goes to this worker, the next ones go to the workers whose offers it accepts.
 */
static void decide_some (const struct worker *w, struct searcher *s, const struct offers *others,
                         struct decisions *d, enum search_answer *answer)
{
    size_t most = others ? 1 + others->n : decisions_wanted (w);
    size_t dims = w->sweep->exp->space->nparams;
    struct search_op op;

    *answer = SEARCH_WAIT;
    d->events = xcalloc (most, sizeof (*d->events));
    d->x = xcalloc (most * dims + 1, sizeof (*d->x));
    while (d->n < most) {
        double *x = d->x + d->n * dims;
        *answer = searcher_ask (s, &op, x);
        if (*answer != SEARCH_RUN || searcher_begin (s, &op, x) < 0)
            break;
        d->events[d->n] = begin_event (w, &op, x, owner_of_segment (w, others, d->n, &op));
        d->n++;
    }
}

static bool segment_fits (const struct worker *w, const struct event *begin)
{
    return time_fits (w, (long)begin->trial, begin->length);
}

static enum turn ask_searcher (struct worker *w, struct slurmdl_error *err)
{
    struct searcher *s = sweep_snapshot (w->sweep);
    struct decisions d = { 0 };
    enum search_answer answer;
    enum turn turn = TURN_IDLE;

    decide_some (w, s, NULL, &d, &answer);
    sweep_end_snapshot (w->sweep, s);
    if (d.n > 0 && !memory_fits (w)) {
        turn = TURN_IDLE;
    } else if (d.n > 0 && !segment_fits (w, &d.events[0])) {
        w->out_of_time = true;
    } else if (d.n > 0) {
        turn = worker_publish (w, d.events, d.n, err) == PUBLISH_FAILED ? TURN_FAILED : TURN_DONE;
    } else if (answer == SEARCH_DONE) {
        turn = publish_one (w, end_event (w), err);
    }
    decisions_free (&d);
    return turn;
}

/* ---- a result, and what follows from it, in one entry ---- */

static bool any_unclaimed (const struct sweep *s, long but)
{
    for (long i = 0; i < s->nopen; i++)
        if (s->open[i] != but && !sweep_trial (s, s->open[i])->owner)
            return true;
    return false;
}

/* Report a result to the searcher. */
static int observe_result (const struct worker *w, struct searcher *s, const struct event *result)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, (long)result->trial);

    searcher_spend (s, (long)result->trial, t->spent + result->seconds);
    return searcher_observe (s, (long)result->trial, result->length,
                             result->nmetrics ? result->metrics : &result->metric);
}

/* Return a copy of the searcher with the results applied, or NULL if it rejects one. */
static struct searcher *foresee (const struct worker *w, const struct event *results, size_t n)
{
    struct searcher *s = sweep_snapshot (w->sweep);
    int rv = 0;

    for (size_t i = 0; i < n && rv == 0; i++)
        rv = observe_result (w, s, &results[i]);
    if (rv == 0)
        return s;
    sweep_end_snapshot (w->sweep, s);
    return NULL;
}

static bool reaches_goal (const struct worker *w, const struct event *results, size_t n)
{
    while (n > 0)
        if (sweep_is_goal (w->sweep, results[--n].metric))
            return true;
    return false;
}

/* Decide what follows the results, in 'd'.  Returns whether this worker gets something to do. */
static bool decide_next (struct worker *w, const struct event *results, const struct offers *others,
                         struct decisions *d)
{
    size_t n = 1 + others->n;
    enum search_answer answer;
    struct searcher *s = NULL;
    bool goes_on = worker_may_begin (w) && !reaches_goal (w, results, n) && w->sweep->ntrials > 0
                   && !decides_by_program (w) && !any_unclaimed (w->sweep, results[0].trial)
                   && (s = foresee (w, results, n));

    if (goes_on) {
        decide_some (w, s, others, d, &answer);
        goes_on = d->n > 0 && memory_fits (w) && segment_fits (w, &d->events[0]);
    }
    sweep_end_snapshot (w->sweep, s);
    return goes_on;
}

enum published worker_publish_result (struct worker *w, struct event *result,
                                      struct slurmdl_error *err)
{
    struct event events[2 * (1 + OFFERS_MAX)] = { *result };
    struct decisions d = { 0 };
    struct offers others;
    size_t n = 1;
    enum published rv;

    offers_collect (w, (long)result->trial, &others);
    for (size_t i = 0; i < others.n; i++)
        events[n++] = others.list[i].result;
    if (decide_next (w, events, &others, &d))
        for (size_t i = 0; i < d.n; i++)
            events[n++] = d.events[i];
    else
        n = 1;
    /* the entry may sync while this worker already trains */
    log_defer (w->sweep->log, n > 1);
    rv = worker_publish (w, events, n, err);
    log_defer (w->sweep->log, false);
    if (rv == PUBLISH_LATE && n > 1)
        offer_put (w, (struct event[]){ *result, d.events[0] });
    else if (rv == PUBLISH_DONE)
        w->rivals = w->offers || others.n > 0;
    decisions_free (&d);
    offers_free (&others);
    return rv;
}

/* ---- what the user's program decides ---- */

/* The program may have needed long for its answer, but its point is still good if the searcher
 * wants one.  Returns PUBLISH_DONE if it does not.
 */
static enum published put_point (struct worker *w, double *x, struct slurmdl_error *err)
{
    struct searcher *s = sweep_snapshot (w->sweep);
    double *y = xcalloc (w->sweep->exp->space->nparams + 1, sizeof (*y));
    struct search_op op;
    bool wanted = searcher_ask (s, &op, y) == SEARCH_RUN && searcher_begin (s, &op, x) == 0
                  && w->sweep->state == SWEEP_RUNNING;
    enum published rv = PUBLISH_DONE;

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
    enum search_answer answer = searcher_ask (w->sweep->searcher, &op, x);
    enum published rv = PUBLISH_LATE;

    if (answer == SEARCH_RUN && !memory_fits (w))
        return TURN_IDLE;
    if (answer == SEARCH_RUN && custom_ask (w, x, &answer, err) < 0)
        return TURN_FAILED;
    if (answer == SEARCH_DONE)
        return publish_one (w, end_event (w), err);
    if (answer != SEARCH_RUN)
        return TURN_IDLE;
    /* with the same seed the program gives another worker the same answer: if that worker was
     * faster, ask again, now that the program can be told
     */
    while (rv == PUBLISH_LATE && !custom_is_taken (w, x))
        rv = put_point (w, x, err);
    return rv == PUBLISH_FAILED ? TURN_FAILED : TURN_DONE;
}

static enum turn ask_program (struct worker *w, struct slurmdl_error *err)
{
    double *x = xcalloc (w->sweep->exp->space->nparams + 1, sizeof (*x));
    enum turn turn = decide_custom (w, x, err);

    free (x);
    return turn;
}

enum turn worker_decide (struct worker *w, struct slurmdl_error *err)
{
    return decides_by_program (w) ? ask_program (w, err) : ask_searcher (w, err);
}

enum turn worker_finish (struct worker *w, struct slurmdl_error *err)
{
    return publish_one (w, end_event (w), err);
}

/* Begin no more segments; the sweep ends when none is being trained. */
enum turn worker_wind_up (struct worker *w, struct slurmdl_error *err)
{
    if (!w->sweep->expired)
        return publish_one (w, (struct event){ .op = EVENT_EXPIRE, .by = w->slot }, err);
    for (long i = 0; i < w->sweep->nopen; i++)
        if (worker_trains (w, w->sweep->open[i]))
            return TURN_IDLE;
    return publish_one (w, end_event (w), err);
}
