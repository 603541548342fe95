/* SPDX-License-Identifier: Apache-2.0 */
/* The pull loop: claim what is open, else decide what comes next. */
#include "launcher/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/peer.h"
#include "runtime/error.h"

/* A trial whose workers die this often at one segment without a word (the
 * kernel killed them for its memory, say) takes the sweep down no further.
 */
enum { LOST_MAX = 20 };

static const int watched[] = { SIGTERM, SIGUSR2, SIGINT, SIGCHLD };

static int watch_signals (void)
{
    sigset_t set;

    sigemptyset (&set);
    for (size_t i = 0; i < sizeof (watched) / sizeof (*watched); i++)
        sigaddset (&set, watched[i]);
    sigprocmask (SIG_BLOCK, &set, NULL);
    return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int worker_signal (struct worker *w)
{
    struct signalfd_siginfo info;

    if (read (w->signals, &info, sizeof (info)) != sizeof (info))
        return 0;
    if (info.ssi_signo != SIGCHLD && !w->stop)
        w->stop = (int)info.ssi_signo;
    return (int)info.ssi_signo;
}

int worker_tick (struct worker *w, struct slurmdl_error *err)
{
    if (monotonic () - w->beat < (double)w->sweep->exp->heartbeat)
        return 0;
    w->beat = monotonic ();
    /* a sign of life that cannot be given is no reason to stop */
    peer_beat (w->peer, NULL);
    return sweep_sync (w->sweep, err) < 0 ? -1 : 0;
}

static void rest (struct worker *w, double seconds)
{
    struct pollfd p = { .fd = w->signals, .events = POLLIN };

    if (poll (&p, 1, (int)(seconds * 1000)) == 1)
        worker_signal (w);
}

static const char *by (const struct worker *w)
{
    return peer_self (w->peer)->slot;
}

/* ---- what came of an attempt ---- */

static json_t *
report_event (struct worker *w, long trial, const struct report *r)
{
    static const char *const ops[] = { "result", "fail", "park" };
    const struct trial *t = sweep_trial (w->sweep, trial);
    json_t *event = event_trial (ops[r->outcome], by (w), trial, t->over + 1);

    json_object_set_new (event, "seconds", json_real (r->seconds));
    if (r->outcome == OUTCOME_RESULT) {
        json_object_set_new (event, "length", json_integer (t->target));
        json_object_set_new (event, "metric", number_json (r->metric));
    }
    if (*r->why)
        json_object_set_new (event, "why", json_string (r->why));
    return event;
}

static json_t *exit_event (struct worker *w, long trial)
{
    json_t *event = event_create ("exit", by (w));

    json_object_set_new (event, "trial", json_integer (trial));
    return event;
}

/* Put what the attempt gave; nothing if it was fenced meanwhile. */
static int put_report (struct worker *w,
                       long trial,
                       const struct report *r,
                       struct slurmdl_error *err)
{
    const struct trial *t = sweep_trial (w->sweep, trial);
    long attempt = t->over + 1;
    int rv = 1;

    while (rv == 1 && t->over + 1 == attempt && t->state == TRIAL_OPEN) {
        json_t *events = json_array ();
        json_array_append_new (events, report_event (w, trial, r));
        if (r->outcome == OUTCOME_FAILED
            && t->fails >= w->sweep->exp->max_restarts)
            json_array_append_new (events, exit_event (w, trial));
        rv = sweep_put (w->sweep, events, err);
        t = sweep_trial (w->sweep, trial);
    }
    return rv < 0 ? -1 : 0;
}

static int train (struct worker *w, long trial, struct slurmdl_error *err)
{
    struct report r;

    if (segment_run (w, trial, &r, err) < 0)
        return -1;
    if (r.outcome == OUTCOME_DROPPED)
        return 0;
    return put_report (w, trial, &r, err);
}

/* ---- finding work ---- */

static int put_lost (struct worker *w, long trial, struct slurmdl_error *err)
{
    const struct trial *t = sweep_trial (w->sweep, trial);
    json_t *events = json_array ();
    json_t *event = event_trial ("lost", by (w), trial, t->over + 1);

    json_object_set_new (event, "why", json_string ("its worker is gone"));
    json_array_append_new (events, event);
    if (t->losts >= LOST_MAX)
        json_array_append_new (events, exit_event (w, trial));
    return sweep_put (w->sweep, events, err) < 0 ? -1 : 0;
}

/* 1: the trial is ours, 0: it is not to be had now, 2: look again, -1 */
static int try_trial (struct worker *w, long trial, struct slurmdl_error *err)
{
    const struct trial *t = sweep_trial (w->sweep, trial);
    int rv;

    if (t->state != TRIAL_OPEN)
        return 0;
    rv = peer_claim (w->peer, trial, t->over + 1, t->target, err);
    if (rv <= 0)
        return rv < 0 ? -1 : 1;
    if (!peer_claim_dead (w->peer, trial, t->over + 1, w->sweep->exp->lease))
        return 0;
    return put_lost (w, trial, err) < 0 ? -1 : 2;
}

/* Each worker starts its search elsewhere, so that they rarely meet. */
static long first_trial (const struct worker *w)
{
    unsigned long hash = 5381;

    for (const char *c = peer_self (w->peer)->nonce; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    return w->sweep->ntrials ? (long)(hash % (unsigned long)w->sweep->ntrials)
                             : 0;
}

/* Train an open segment.  1: did, 0: none is to be had, 2: look again, -1 */
static int work (struct worker *w, struct slurmdl_error *err)
{
    long n = w->sweep->ntrials;
    long first = first_trial (w);

    for (long i = 0; i < n; i++) {
        long trial = (first + i) % n + 1;
        int rv = try_trial (w, trial, err);
        if (rv == 1)
            return train (w, trial, err) < 0 ? -1 : 1;
        if (rv != 0)
            return rv;
    }
    return 0;
}

/* ---- deciding ---- */

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
    point = json_array ();
    for (size_t i = 0; i < e->nparams; i++)
        json_array_append_new (point, number_json (x[i]));
    json_object_set_new (event, "x", point);
    json_object_set_new (event, "hparams", hparams_json (e, x));
    return event;
}

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

static json_t *end_event (struct worker *w)
{
    json_t *event = event_create ("end", by (w));
    long failed = 0;

    for (long i = 0; i < w->sweep->ntrials; i++)
        failed += w->sweep->trials[i].state == TRIAL_FAILED;
    json_object_set_new (event,
                         "state",
                         json_string (failed && failed == w->sweep->ntrials
                                          ? "failed"
                                          : "completed"));
    return event;
}

/* 1: something was decided, 0: there is nothing to decide now, -1 */
static int decide (struct worker *w, struct slurmdl_error *err)
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

/* ---- the loop ---- */

static bool may_go_on (const struct worker *w)
{
    return !w->stop && w->sweep->state == SWEEP_RUNNING;
}

static int pull (struct worker *w, struct slurmdl_error *err)
{
    double pause = 0.05;

    while (may_go_on (w)) {
        int rv = sweep_sync (w->sweep, err);
        if (rv > 0)
            pause = 0.05;
        if (rv < 0 || (may_go_on (w) && (rv = work (w, err)) < 0)
            || (rv == 0 && may_go_on (w) && (rv = decide (w, err)) < 0))
            return -1;
        if (rv > 0) {
            pause = 0.05;
            continue;
        }
        if (may_go_on (w)) {
            rest (w, pause);
            pause = pause < 2 ? pause * 1.5 : 2;
        }
        if (worker_tick (w, err) < 0)
            return -1;
    }
    return 0;
}

enum worker_end
worker_run (struct sweep *sweep, const char *slot, struct slurmdl_error *err)
{
    struct worker w = { .sweep = sweep, .signals = -1, .socket = -1 };
    enum worker_end end = WORKER_ERROR;

    if ((w.signals = watch_signals ()) < 0) {
        errorf (err, "signalfd: %s", strerror (errno));
        return end;
    }
    /* without the socket `dl log` says so; all else works */
    socket_open (&w, NULL);
    w.beat = monotonic ();
    if ((w.peer = peer_create (sweep->dir, slot, err)) && pull (&w, err) == 0)
        end = sweep->state != SWEEP_RUNNING ? WORKER_DONE
              : w.stop == SIGTERM           ? WORKER_PREEMPTED
                                            : WORKER_PARKED;
    peer_destroy (w.peer);
    socket_close (&w);
    close (w.signals);
    return end;
}
