/* SPDX-License-Identifier: Apache-2.0 */
/* What all parts of a worker use: signals, heartbeats, claims, publishing. */
#include "launcher/config/experiment.h"
#include "launcher/config/resources.h"
#include "launcher/config/worker_settings.h"
#include "launcher/worker/worker_private.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/config/job_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/strings.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/rank/layout.h"

static const int watched_signals[] = { SIGTERM, SIGUSR2, SIGINT, SIGHUP, SIGCHLD };

int worker_watch_signals (void)
{
    sigset_t set;

    sigemptyset (&set);
    for (size_t i = 0; i < sizeof (watched_signals) / sizeof (*watched_signals); i++)
        sigaddset (&set, watched_signals[i]);
    sigprocmask (SIG_BLOCK, &set, NULL);
    return signalfd (-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Record the node, and the GPUs that trainers see. */
static void describe_node (struct worker *w)
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

int worker_begin (struct worker *w, struct slurmdl_error *err)
{
    if ((w->signals = worker_watch_signals ()) < 0)
        return errorf (err, "signalfd: %s", strerror (errno));
    describe_node (w);
    w->beat = monotonic ();
    job_memory_find ("", &w->memory);
    return 0;
}

int worker_signal (struct worker *w)
{
    struct signalfd_siginfo info;

    if (read (w->signals, &info, sizeof (info)) != sizeof (info))
        return 0;
    if (info.ssi_signo != SIGCHLD && !w->stop) {
        w->stop = (int)info.ssi_signo;
        /* the monitor of the worker's own step sends it (launcher/monitor/sample.c) */
        w->idle = info.ssi_signo == SIGUSR2 && info.ssi_code == SI_QUEUE ? info.ssi_int : 0;
    }
    return (int)info.ssi_signo;
}

/* Stop in time for the trainer to save a checkpoint before Slurm kills the job. */
static void watch_time_limit (struct worker *w)
{
    if (w->end > 0 && !w->stop && monotonic () + (double)w->sweep->exp->worker->grace >= w->end) {
        w->stop = SIGUSR2;
        w->timed_out = true;
    }
}

int worker_tick (struct worker *w, struct slurmdl_error *err)
{
    watch_time_limit (w);
    if (!w->peer || monotonic () - w->beat < (double)w->sweep->exp->worker->heartbeat)
        return 0;
    w->beat = monotonic ();
    /* a heartbeat that cannot be written is no reason to stop */
    peer_beat (w->peer, NULL);
    return sweep_sync (w->sweep, err) < 0 ? -1 : 0;
}

void worker_sleep (struct worker *w, double seconds)
{
    struct pollfd p = { .fd = w->signals, .events = POLLIN };

    if (poll (&p, 1, (int)(seconds * 1000)) == 1)
        worker_signal (w);
}

bool worker_time_is_over (const struct worker *w)
{
    return w->sweep->expired || sweep_is_late (w->sweep);
}

const char *worker_nonce (const struct worker *w)
{
    return peer_self (w->peer)->nonce;
}

struct good_nodes {
    const struct worker *w;
    long component; /* of the job, whose nodes are being counted */
    long all, good, wanted;
    FILE *list; /* receives the nodes; NULL to only count them */
};

/* Return the index of a node in lost_nodes, or -1. */
static int lost_index (const struct worker *w, const char *name)
{
    for (int i = 0; i < w->nlost; i++)
        if (!strcmp (w->lost_nodes[i].name, name))
            return i;
    return -1;
}

static bool is_lost (const struct worker *w, const char *name)
{
    return lost_index (w, name) >= 0;
}

static int count_node (void *nodes, const char *name)
{
    struct good_nodes *n = nodes;
    const struct host *h = sweep_host (n->w->sweep, name);

    /* components may share nodes; the first one counts them */
    if (n->component > 0 && slurm_component_of (name) != n->component)
        return 0;
    n->all++;
    if ((h && h->why) || is_lost (n->w, name))
        return 0;
    if (n->good++ < n->wanted && n->list)
        fprintf (n->list, "%s%s", n->good > 1 ? "," : "", name);
    return 0;
}

/* Slurm places members with roles, on all nodes. */
static bool takes_any (const struct experiment *e)
{
    return e->job->nroles > 0 && !e->resources->given.nodes;
}

/* Returns whether the allocation lists its nodes. */
static bool find_good_nodes (struct good_nodes *n)
{
    n->wanted = takes_any (n->w->sweep->exp) ? LONG_MAX : (long)n->w->sweep->exp->resources->nodes;
    for (n->component = 0; n->component < slurm_components (); n->component++) {
        const char *list = slurm_component_nodes (n->component);
        if (!list || layout_each_host (list, count_node, n) != 0)
            return false;
    }
    return n->all > 0;
}

char *worker_good_nodes (const struct worker *w, long *count, bool *all)
{
    char *text = NULL;
    size_t size;
    struct good_nodes n = { .w = w, .list = xopen_memstream (&text, &size) };
    bool found = find_good_nodes (&n);

    xclose_memstream (n.list);
    *count = n.good < n.wanted ? n.good : n.wanted;
    *all = n.all == n.good && n.all == n.wanted;
    if (found && n.good > 0)
        return text;
    free (text);
    return NULL;
}

void worker_find_node (struct worker *w, int lost)
{
    w->nlost--;
    memmove (&w->lost_nodes[lost], &w->lost_nodes[lost + 1],
             sizeof (w->lost_nodes[0]) * (size_t)(w->nlost - lost));
}

bool worker_lose_node (struct worker *w, const char *name)
{
    if (is_lost (w, name) || w->nlost == LOST_NODES)
        return false;
    w->lost_nodes[w->nlost] = (struct lost_node){ .is_taken = false };
    snprintf (w->lost_nodes[w->nlost++].name, sizeof (w->lost_nodes[0].name), "%s", name);
    return true;
}

bool worker_take_node (struct worker *w, const char *name)
{
    int i;

    worker_lose_node (w, name);
    i = lost_index (w, name);
    if (i < 0 || w->lost_nodes[i].is_taken)
        return false;
    return w->lost_nodes[i].is_taken = true;
}

void worker_exclude_node (struct worker *w, const char *name, const char *why)
{
    struct event e = { .op = EVENT_EXCLUDE, .by = w->slot, .host = name, .why = why };

    if (w->sweep->log)
        worker_publish (w, &e, 1, NULL);
    else
        worker_lose_node (w, name);
}

/* Return the number of nodes without which a trial cannot continue. */
static int64_t least_nodes (const struct experiment *e)
{
    int64_t begins = job_min_nodes (e);
    int64_t continues = experiment_least_nodes (e);

    return begins < continues ? begins : continues;
}

/* A worker of trials with several ranks only starts them, and they may run elsewhere. */
bool worker_is_excluded (const struct worker *w)
{
    const struct experiment *e = w->sweep->exp;
    const struct host *h = sweep_host (w->sweep, w->host);
    struct good_nodes n = { .w = w };

    if (w->is_alone)
        return true;
    if (w->nlost == 0 && w->sweep->nhosts == 0)
        return false;
    if (experiment_has_ranks (e) && find_good_nodes (&n))
        return n.good < (takes_any (e) ? n.all : least_nodes (e));
    return (h && h->why) || is_lost (w, w->host);
}

bool worker_may_go_on (const struct worker *w)
{
    return !w->stop && !w->left_over && w->sweep->state == SWEEP_RUNNING
           && !sweep_retires (w->sweep, w->slot) && !worker_is_excluded (w);
}

bool worker_may_begin (const struct worker *w)
{
    return worker_may_go_on (w) && !worker_time_is_over (w);
}

const char *worker_owner_of (struct worker *w, long trial)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, trial);

    return t->owner ? t->owner : peer_claimant (w->peer, trial, t->over + 1);
}

bool worker_trains (struct worker *w, long trial)
{
    const char *owner = worker_owner_of (w, trial);

    return owner && strcmp (owner, worker_nonce (w))
           && !peer_dead (w->peer, owner, w->sweep->exp->worker->lease);
}

/* A worker that was asked to stop retries for as long as it would let a trainer run on. */
static bool may_wait_for_space (const struct worker *w, double *limit)
{
    if (w->stop && *limit == 0)
        *limit = monotonic () + (double)w->sweep->exp->worker->grace;
    return *limit == 0 || monotonic () < *limit;
}

void worker_note_full_disk (struct worker *w, const struct slurmdl_error *why)
{
    if (!w->waits)
        fprintf (stderr, "dl: %s; waiting for space\n", why->text);
    w->waits = true;
}

enum published worker_publish (struct worker *w, struct event *events, size_t n,
                               struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    long length = log_length (w->sweep->log);
    double limit = 0;
    enum published rv;

    /* once the log has grown, the entry may be in it: do not publish it twice */
    while ((rv = sweep_publish (w->sweep, events, n, &why)) == PUBLISH_FAILED
           && disk_is_full (errno) && log_length (w->sweep->log) == length
           && may_wait_for_space (w, &limit)) {
        if (disk_reserve_spend (w->sweep->dir) < 0) {
            worker_note_full_disk (w, &why);
            peer_beat (w->peer, NULL);
            worker_sleep (w, 2);
        }
        why = (struct slurmdl_error){ "" };
    }
    if (rv == PUBLISH_FAILED)
        errorf (err, "%s", why.text);
    return rv;
}
