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

static void
add_result (const struct worker *w, json_t *event, const struct report *r)
{
    size_t n = sweep_metrics (w->sweep);
    json_t *all = json_array ();

    json_object_set_new (event, "length", json_integer (r->length));
    json_object_set_new (event, "metric", number_json (r->values[0]));
    for (size_t i = 0; i < n; i++)
        json_array_append_new (all, number_json (r->values[i]));
    if (n > 1)
        json_object_set (event, "metrics", all);
    json_decref (all);
    if (r->stopped)
        json_object_set_new (event, "stopped", json_true ());
}

static json_t *
report_event (struct worker *w, long trial, const struct report *r)
{
    static const char *const ops[] = { "result", "fail", "park", "reject" };
    const struct trial *t = sweep_trial (w->sweep, trial);
    json_t *event = event_trial (ops[r->outcome], by (w), trial, t->over + 1);

    json_object_set_new (event, "seconds", json_real (r->seconds));
    if (r->outcome == OUTCOME_RESULT)
        add_result (w, event, r);
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

/* ---- the loop ---- */

static bool may_go_on (const struct worker *w)
{
    return !w->stop && w->sweep->state == SWEEP_RUNNING;
}

/* 1: did something, 0: there is nothing to do now, -1 */
static int do_next (struct worker *w, struct slurmdl_error *err)
{
    int rv;

    if (!may_go_on (w))
        return 0;
    if (worker_is_late (w))
        return worker_wind_up (w, err);
    if ((rv = work (w, err)) != 0 || !may_go_on (w))
        return rv;
    return worker_decide (w, err);
}

static int pull (struct worker *w, struct slurmdl_error *err)
{
    double pause = 0.05;

    while (may_go_on (w)) {
        int news = sweep_sync (w->sweep, err);
        int did = news < 0 ? -1 : do_next (w, err);
        if (did < 0)
            return -1;
        if (news > 0 || did > 0)
            pause = 0.05;
        if (did > 0)
            continue;
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
    int e;

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
    e = errno;
    custom_close (&w);
    peer_destroy (w.peer);
    socket_close (&w);
    close (w.signals);
    errno = e;
    return end;
}
