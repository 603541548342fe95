/* SPDX-License-Identifier: Apache-2.0 */
/* The pull loop: claim what is open, else decide what comes next. */
#include "launcher/worker/worker.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/journal/log.h"
#include "launcher/membership/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/requests.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/worker/lost_worker.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/rank/layout.h"

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

/* What Slurm kills first can save nothing. */
static void watch_clock (struct worker *w)
{
    if (w->end > 0 && !w->stop
        && monotonic () + (double)w->sweep->exp->grace >= w->end)
        w->stop = SIGUSR2;
}

int worker_tick (struct worker *w, struct slurmdl_error *err)
{
    watch_clock (w);
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

const char *worker_nonce (const struct worker *w)
{
    return peer_self (w->peer)->nonce;
}

static int look_up_node (void *sweep, const char *name)
{
    const struct host *h = sweep_host (sweep, name);

    return h && h->why;
}

/* A trial of several nodes has all those of the allocation. */
bool worker_is_excluded (const struct worker *w)
{
    const char *nodes =
        w->sweep->exp->nodes > 1 ? getenv ("SLURM_JOB_NODELIST") : NULL;

    return look_up_node (w->sweep, w->host)
           || (nodes && w->sweep->nhosts > 0
               && layout_each_host (nodes, look_up_node, w->sweep) > 0);
}

static bool may_go_on (const struct worker *w)
{
    return !w->stop && w->sweep->state == SWEEP_RUNNING
           && !sweep_retires (w->sweep, w->slot) && !worker_is_excluded (w);
}

bool worker_may_begin (const struct worker *w)
{
    return may_go_on (w) && !worker_is_late (w);
}

/* ---- a full disk ---- */

/* Told to go, it tries for as long as it would give a trainer. */
static bool has_patience (const struct worker *w, double *limit)
{
    if (w->stop && *limit == 0)
        *limit = monotonic () + (double)w->sweep->exp->grace;
    return *limit == 0 || monotonic () < *limit;
}

static void wait_for_space (struct worker *w, const struct slurmdl_error *why)
{
    if (!w->waits)
        fprintf (stderr, "dl: %s; waiting for space\n", why->text);
    w->waits = true;
}

int worker_put (struct worker *w,
                struct event *events,
                size_t n,
                struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    long length = log_length (w->sweep->log);
    double limit = 0;
    int rv;

    /* what was put and read must not be put again */
    while ((rv = sweep_put (w->sweep, events, n, &why)) < 0
           && disk_is_full (errno) && log_length (w->sweep->log) == length
           && has_patience (w, &limit)) {
        if (reserve_spend (w->sweep->dir) < 0) {
            wait_for_space (w, &why);
            peer_beat (w->peer, NULL);
            rest (w, 2);
        }
        why = (struct slurmdl_error){ "" };
    }
    if (rv < 0)
        errorf (err, "%s", why.text);
    return rv;
}

/* Nothing begins before there is room again for what it will have to say. */
static bool disk_has_room (struct worker *w)
{
    if (w->waits && reserve_make (w->sweep->dir, NULL) == 0) {
        fputs ("dl: there is space again\n", stderr);
        w->waits = false;
    }
    return !w->waits;
}

/* ---- one attempt ---- */

static int train (struct worker *w, long trial, struct slurmdl_error *err)
{
    struct report r;

    if (segment_run (w, trial, &r, err) < 0)
        return -1;
    w->fresh = false;
    if (r.outcome == OUTCOME_FAILED && r.verdict.error)
        w->waits = true;
    if (r.outcome == OUTCOME_DROPPED)
        return 0;
    return worker_put_report (w, trial, &r, err);
}

/* ---- finding work ---- */

/* What is known of the end of the worker 'owner'; NULL: nothing. */
static const struct lost *loss_of (const struct worker *w, const char *owner)
{
    return w->lost && *w->lost->why && peer_preceded (w->peer, owner) ? w->lost
                                                                      : NULL;
}

/* Put that the attempt's worker is gone; memory that it ran out of is the
 * trial's failure, though not the machine's.
 */
static int put_lost (struct worker *w,
                     long trial,
                     const char *owner,
                     struct slurmdl_error *err)
{
    const struct trial *t = sweep_trial (w->sweep, trial);
    const struct lost *lost = loss_of (w, owner);
    bool counted = lost && lost->counted;
    bool last = counted ? t->fails >= w->sweep->exp->max_restarts
                        : t->losts >= LOST_MAX;
    struct event events[2] = {
        { .op = counted ? EVENT_FAIL : EVENT_LOST,
          .by = w->slot,
          .trial = trial,
          .attempt = t->over + 1,
          .why = lost ? lost->why : "its worker is gone" },
        { .op = EVENT_EXIT, .by = w->slot, .trial = trial },
    };

    return worker_put (w, events, last ? 2 : 1, err);
}

/* NULL: nobody has it. */
static const char *owner_of (struct worker *w, long trial)
{
    const struct trial *t = sweep_trial (w->sweep, trial);

    return t->owner ? t->owner : peer_claimant (w->peer, trial, t->over + 1);
}

bool worker_trains (struct worker *w, long trial)
{
    const char *owner = owner_of (w, trial);

    return owner && strcmp (owner, worker_nonce (w))
           && !peer_dead (w->peer, owner, w->sweep->exp->lease);
}

/* 1: it is ours, 0: it is not, -1 */
static int claim (struct worker *w, long trial, struct slurmdl_error *err)
{
    const struct trial *t = sweep_trial (w->sweep, trial);
    int rv;

    if (!budget_fits (w, trial, t->target)) {
        w->out_of_time = true;
        return 0;
    }
    rv = peer_claim (w->peer, trial, t->over + 1, t->target, err);
    return rv < 0 ? -1 : rv == 0;
}

/* 1: the trial is ours, 0: it is not to be had now, 2: look again, -1 */
static int try_trial (struct worker *w, long trial, struct slurmdl_error *err)
{
    const char *owner;

    if (sweep_trial (w->sweep, trial)->state != TRIAL_OPEN)
        return 0;
    if (!(owner = owner_of (w, trial)))
        return claim (w, trial, err);
    if (!strcmp (owner, worker_nonce (w)))
        return 1;
    if (!w->looks || !peer_dead (w->peer, owner, w->sweep->exp->lease))
        return 0;
    return put_lost (w, trial, owner, err) < 0 ? -1 : 2;
}

/* Each worker starts its search elsewhere, so that they rarely meet. */
static long first_trial (const struct worker *w)
{
    unsigned long hash = 5381;

    for (const char *c = worker_nonce (w); *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    return w->sweep->ntrials ? (long)(hash % (unsigned long)w->sweep->ntrials)
                             : 0;
}

/* The dead are looked for once a second: with many workers that takes longer
 * than all else.
 */
static bool is_time_to_look (struct worker *w)
{
    if (monotonic () - w->looked < 1)
        return false;
    w->looked = monotonic ();
    return true;
}

/* One that it has put for itself comes first: nobody else may train it. */
static long own_trial (const struct worker *w)
{
    for (long i = 1; i <= w->sweep->ntrials; i++) {
        const struct trial *t = sweep_trial (w->sweep, i);
        if (t->state == TRIAL_OPEN && t->owner
            && !strcmp (t->owner, worker_nonce (w)))
            return i;
    }
    return 0;
}

/* Train an open segment.  1: did, 0: none is to be had, 2: look again, -1 */
static int work (struct worker *w, struct slurmdl_error *err)
{
    long n = w->sweep->ntrials;
    long first = first_trial (w);
    long own = own_trial (w);

    if (own)
        return train (w, own, err) < 0 ? -1 : 1;

    w->looks = is_time_to_look (w);
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

/* 1: did something, 0: there is nothing to do now, -1 */
static int do_next (struct worker *w, struct slurmdl_error *err)
{
    int rv;

    w->out_of_time = false;
    if (!may_go_on (w) || !disk_has_room (w))
        return 0;
    if (worker_is_late (w))
        return worker_wind_up (w, err);
    if ((rv = work (w, err)) != 0 || !may_go_on (w))
        return rv;
    return worker_decide (w, err);
}

/* A full disk is no end: what is its own stays its own meanwhile. */
static int try_next (struct worker *w, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    int rv = do_next (w, &why);

    if (rv >= 0)
        return rv;
    if (!disk_is_full (errno) || w->stop)
        return errorf (err, "%s", why.text);
    wait_for_space (w, &why);
    return 0;
}

/* Those that wait read the log some 300 times a second in all. */
static double least_pause (const struct worker *w)
{
    double pause = (double)w->sweep->exp->workers / 320;

    return fmin (fmax (pause, 0.05), 2);
}

static int pull (struct worker *w, struct slurmdl_error *err)
{
    double pause = least_pause (w);

    while (may_go_on (w)) {
        int news = sweep_sync (w->sweep, err);
        int did = news < 0 ? -1 : try_next (w, err);
        if (did < 0)
            return -1;
        if (news > 0 || did > 0)
            pause = least_pause (w);
        if (did > 0)
            continue;
        if (w->out_of_time)
            break;
        if (may_go_on (w)) {
            rest (w, pause);
            pause = pause < 2 ? pause * 1.5 : 2;
        }
        if (worker_tick (w, err) < 0)
            return -1;
    }
    return 0;
}

static enum worker_end how_it_ended (const struct worker *w)
{
    if (w->sweep->state != SWEEP_RUNNING || sweep_retires (w->sweep, w->slot))
        return WORKER_DONE;
    if (worker_is_excluded (w))
        return WORKER_EXCLUDED;
    return w->stop == SIGTERM ? WORKER_PREEMPTED : WORKER_PARKED;
}

/* What the trainers see of the machine, for the records. */
static void look_around_here (struct worker *w)
{
    static const char *const names[] = { "CUDA_VISIBLE_DEVICES",
                                         "ROCR_VISIBLE_DEVICES",
                                         "ZE_AFFINITY_MASK" };
    const char *node = getenv ("SLURMD_NODENAME");
    const char *gpus = NULL;

    for (size_t i = 0; i < sizeof (names) / sizeof (*names) && !gpus; i++)
        gpus = getenv (names[i]);
    snprintf (w->gpus, sizeof (w->gpus), "%s", gpus ? gpus : "");
    if (node)
        snprintf (w->host, sizeof (w->host), "%s", node);
    else
        gethostname (w->host, sizeof (w->host) - 1);
}

enum worker_end worker_run (struct sweep *sweep,
                            const struct worker_place *place,
                            struct slurmdl_error *err)
{
    struct worker w = { .sweep = sweep,
                        .slot = place->slot,
                        .fresh = place->fresh,
                        .lost = place->lost,
                        .signals = -1,
                        .socket = -1,
                        .socket_lock = -1 };
    enum worker_end end = WORKER_ERROR;
    int e;

    if ((w.signals = watch_signals ()) < 0) {
        errorf (err, "signalfd: %s", strerror (errno));
        return end;
    }
    look_around_here (&w);
    /* without the socket `dl log` says so; all else works */
    socket_open (&w, NULL);
    w.beat = monotonic ();
    if (place->seconds > 0)
        w.end = w.beat + place->seconds;
    if ((w.peer = peer_create (sweep->dir, w.slot, err)) && pull (&w, err) == 0)
        end = how_it_ended (&w);
    if (w.closes)
        worker_close_sweep (&w);
    e = errno;
    custom_close (&w);
    peer_destroy (w.peer);
    socket_close (&w);
    close (w.signals);
    errno = e;
    return end;
}
