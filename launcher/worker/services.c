/* SPDX-License-Identifier: Apache-2.0 */
/* The services of a worker: signals, signs of life, log entries, a full disk.
 */
#include "launcher/worker/services.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/requests.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/strings.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/rank/layout.h"

static const int watched[] = { SIGTERM, SIGUSR2, SIGINT, SIGCHLD };

int worker_watch_signals (void)
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
    if (w->end > 0 && !w->stop && monotonic () + (double)w->sweep->exp->grace >= w->end)
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

void worker_sleep (struct worker *w, double seconds)
{
    struct pollfd p = { .fd = w->signals, .events = POLLIN };

    if (poll (&p, 1, (int)(seconds * 1000)) == 1)
        worker_signal (w);
}

/* Clocks need not agree: the event counts, whoever puts it first. */
bool worker_is_late (const struct worker *w)
{
    return w->sweep->expired || sweep_is_late (w->sweep);
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
    const char *nodes = w->sweep->exp->nodes > 1 ? getenv ("SLURM_JOB_NODELIST") : NULL;

    return look_up_node (w->sweep, w->host)
           || (nodes && w->sweep->nhosts > 0
               && layout_each_host (nodes, look_up_node, w->sweep) > 0);
}

bool worker_may_go_on (const struct worker *w)
{
    return !w->stop && !w->left_over && w->sweep->state == SWEEP_RUNNING
           && !sweep_retires (w->sweep, w->slot) && !worker_is_excluded (w);
}

bool worker_may_begin (const struct worker *w)
{
    return worker_may_go_on (w) && !worker_is_late (w);
}

/* NULL: nobody has it. */
const char *worker_owner_of (struct worker *w, long trial)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, trial);

    return t->owner ? t->owner : peer_claimant (w->peer, trial, t->over + 1);
}

bool worker_trains (struct worker *w, long trial)
{
    const char *owner = worker_owner_of (w, trial);

    return owner && strcmp (owner, worker_nonce (w))
           && !peer_dead (w->peer, owner, w->sweep->exp->lease);
}

/* Asked to stop, it tries for as long as it would give a trainer. */
static bool may_wait (const struct worker *w, double *limit)
{
    if (w->stop && *limit == 0)
        *limit = monotonic () + (double)w->sweep->exp->grace;
    return *limit == 0 || monotonic () < *limit;
}

void worker_wait_for_space (struct worker *w, const struct slurmdl_error *why)
{
    if (!w->waits)
        fprintf (stderr, "dl: %s; waiting for space\n", why->text);
    w->waits = true;
}

int worker_publish (struct worker *w, struct event *events, size_t n, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    long length = log_length (w->sweep->log);
    double limit = 0;
    int rv;

    /* what was published and read must not be published twice */
    while ((rv = sweep_publish (w->sweep, events, n, &why)) < 0 && disk_is_full (errno)
           && log_length (w->sweep->log) == length && may_wait (w, &limit)) {
        if (disk_reserve_spend (w->sweep->dir) < 0) {
            worker_wait_for_space (w, &why);
            peer_beat (w->peer, NULL);
            worker_sleep (w, 2);
        }
        why = (struct slurmdl_error){ "" };
    }
    if (rv < 0)
        errorf (err, "%s", why.text);
    return rv;
}

/* No attempt begins before there is space for its result. */
bool worker_has_space (struct worker *w)
{
    if (w->waits && disk_reserve_make (w->sweep->dir, NULL) == 0) {
        fputs ("dl: there is space again\n", stderr);
        w->waits = false;
    }
    return !w->waits;
}

/* What the trainers see of the machine, for the records. */
void worker_describe_node (struct worker *w)
{
    static const char *const names[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
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
    word_make_fit (w->host);
}
