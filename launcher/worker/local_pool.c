/* SPDX-License-Identifier: Apache-2.0 */
/* Run processes of this machine, each with GPUs and cores of its own. */
#include "launcher/worker/worker.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/devices.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* How often a process is started. */
enum { LOCAL_TRIES_MAX = 20 };

/* Seconds to wait for processes that were killed. */
enum { KILL_WAIT = 10 };

/* What the running processes divide among themselves.  The place is just a number that no other one
 * has.
 */
enum pool_share { SHARE_PLACE, SHARE_GPUS, SHARE_CORES, SHARES };

struct local_child {
    const struct local_pool *pool;
    struct local_process what;
    char **words; /* a copy */
    pid_t pid;    /* 0: it has ended for good */
    int tries;
    struct {
        long first, n;
    } shares[SHARES];
};

struct local_pool {
    const struct local_pool_ops *ops;
    void *arg;
    long most;
    struct devices *devices;
    struct local_child *list;
    size_t n;
    long running;
    bool ends; /* start nothing again */
};

/* ---- GPUs and cores ---- */

/* Tests set DL_DEVICE_FOLDER. */
static struct devices *find_local_devices (void)
{
    return devices_find (getenv ("DL_DEVICE_FOLDER") ?: "/dev");
}

int local_gpus (void)
{
    struct devices *d = find_local_devices ();
    int n = d->ngpus;

    devices_destroy (d);
    return n;
}

/* The first of 'wanted' adjacent numbers below 'end' that no running process has; -1: there are
 * none.
 */
static long find_free_share (const struct local_pool *p, enum pool_share share, long wanted,
                             long end)
{
    long first = 0;

    for (size_t i = 0; i < p->n && wanted > 0; i++) {
        const struct local_child *c = &p->list[i];
        long from = c->shares[share].first, to = from + c->shares[share].n;
        if (c->pid > 0 && from < first + wanted && first < to) {
            first = to;
            i = (size_t)-1; /* compare with all again */
        }
    }
    return first + wanted <= end ? first : -1;
}

bool local_pool_has_gpus (const struct local_pool *p, int gpus)
{
    return find_free_share (p, SHARE_GPUS, gpus, p->devices->ngpus) >= 0;
}

/* Returns -1 if too few GPUs are free.  Without free cores a process may use them all. */
static int take_shares (const struct local_pool *p, struct local_child *c)
{
    const long wanted[SHARES] = { 1, c->what.gpus, c->what.cores };
    const long ends[SHARES] = { (long)p->n + 1, p->devices->ngpus, cores_count () };

    for (int i = 0; i < SHARES; i++) {
        long first = find_free_share (p, (enum pool_share)i, wanted[i], ends[i]);
        if (first < 0 && i == SHARE_GPUS) {
            errno = EBUSY;
            return -1;
        }
        c->shares[i].first = first < 0 ? 0 : first;
        c->shares[i].n = first < 0 ? 0 : wanted[i];
    }
    return 0;
}

/* ---- a process ---- */

/* Runs in the new process. */
static void prepare_local_child (const void *arg)
{
    const struct local_child *c = arg;
    char place[64];

    if (c->shares[SHARE_GPUS].n > 0)
        devices_take (c->pool->devices, (int)c->shares[SHARE_GPUS].first,
                      (int)c->shares[SHARE_GPUS].n);
    if (c->shares[SHARE_CORES].n > 0)
        cores_take (c->shares[SHARE_CORES].first, c->shares[SHARE_CORES].n);
    snprintf (place, sizeof (place), "%ld/%ld", c->shares[SHARE_PLACE].first, c->pool->most);
    setenv ("DL_WORKER_PLACE", place, 1);
}

static int spawn_local_child (struct local_child *c)
{
    int output = c->what.output;
    pid_t pid = subprocess_spawn (
        &(struct spawn){ .argv = c->words,
                         .io = { -1, output < 0 ? 1 : output, output < 0 ? 2 : output },
                         .death_signal = SIGTERM,
                         .prepare = prepare_local_child,
                         .arg = c });

    if (pid < 0)
        return -1;
    c->pid = pid;
    c->tries++;
    return 0;
}

static void release_local_child (const struct local_child *c)
{
    int e = errno;

    strings_free (c->words);
    if (c->what.output >= 0)
        close (c->what.output);
    errno = e;
}

int local_pool_start (struct local_pool *p, const struct local_process *what)
{
    struct local_child c = { .pool = p, .what = *what };
    size_t at = 0;

    strings_add_all (&c.words, what->words);
    if (take_shares (p, &c) < 0 || spawn_local_child (&c) < 0) {
        release_local_child (&c);
        return -1;
    }
    while (at < p->n && p->list[at].pid > 0)
        at++;
    if (at == p->n) {
        XGROW (p->list, p->n);
        p->n++;
    }
    p->list[at] = c;
    p->running++;
    return 0;
}

/* Returns whether the process has ended for good. */
static bool reap_local_child (struct local_pool *p, struct local_child *c, int *status)
{
    if (c->pid <= 0 || waitpid (c->pid, status, WNOHANG) != c->pid)
        return false;
    if (!p->ends && c->tries < LOCAL_TRIES_MAX && p->ops->again (*status)
        && spawn_local_child (c) == 0)
        return false;
    c->pid = 0;
    p->running--;
    release_local_child (c);
    return true;
}

long local_pool_reap (struct local_pool *p)
{
    int status;

    /* ended() may start processes, and so move the list */
    for (size_t i = 0; i < p->n; i++)
        if (reap_local_child (p, &p->list[i], &status))
            p->ops->ended (p->arg, p->list[i].what.of, status);
    return p->running;
}

/* ---- all processes ---- */

struct local_pool *local_pool_create (const struct local_pool_ops *ops, void *arg, long most)
{
    struct local_pool *p = xcalloc (1, sizeof (*p));

    *p = (struct local_pool){ .ops = ops, .arg = arg, .most = most };
    p->devices = find_local_devices ();
    return p;
}

void local_pool_resize (struct local_pool *p, long most)
{
    p->most = most;
}

static void signal_local_children (const struct local_pool *p, int number)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].pid > 0)
            kill (p->list[i].pid, number);
}

static void await_local_children (struct local_pool *p, double seconds)
{
    double limit = monotonic () + seconds;

    while (local_pool_reap (p) > 0 && monotonic () < limit)
        usleep (20000);
}

void local_pool_end (struct local_pool *p, double seconds)
{
    p->ends = true;
    signal_local_children (p, SIGTERM);
    await_local_children (p, seconds);
    if (p->running == 0)
        return;
    complain ("%ld process%s did not exit within %.0f s: killed", p->running,
              p->running == 1 ? "" : "es", seconds);
    signal_local_children (p, SIGKILL);
    await_local_children (p, KILL_WAIT);
}

void local_pool_destroy (struct local_pool *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].pid > 0)
            release_local_child (&p->list[i]);
    devices_destroy (p->devices);
    free (p->list);
    free (p);
}
