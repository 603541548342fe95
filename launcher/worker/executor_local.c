/* SPDX-License-Identifier: Apache-2.0 */
/* Start workers as processes of this machine. */
#include "launcher/config/experiment.h"
#include "launcher/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/log_policy.h"
#include "launcher/config/resources.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/devices.h"
#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/temporary_folder.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

struct local_worker {
    pid_t pid; /* 0 if it has ended for good */
    int tries;
    int place; /* its share of the GPUs and cores */
    char slot[48];
};

struct devices *local_devices (void)
{
    return devices_find (getenv ("DL_DEVICE_FOLDER") ?: "/dev");
}

struct worker_start {
    const struct executor *x;
    const struct local_worker *w;
};

/* Runs in the new worker process.  Trainers inherit its environment, GPUs and cores. */
static void prepare_worker (const void *arg)
{
    const struct worker_start *s = arg;
    const struct experiment *e = s->x->sweep->exp;
    char place[64];

    if (e->resources->node_gpus > 0)
        devices_take (s->x->devices, s->w->place, (int)e->resources->node_gpus);
    setenv ("DL_PIN", s->x->sweep->pin, 1);
    snprintf (place, sizeof (place), "%d/%ld", s->w->place, s->x->workers);
    setenv ("DL_WORKER_PLACE", place, 1);
    cores_take (s->w->place, s->x->workers, (long)e->resources->cpus);
}

/* An existing file comes from an earlier try, or from an earlier process with this PID.  A file
 * with a second hard link may be somebody else's.
 */
static int open_worker_log (const char *path)
{
    int flags = O_WRONLY | O_APPEND;
    struct stat st;
    int fd = inside_open (path, flags, 0, &st);

    if (fd < 0 && errno == ENOENT)
        return inside_open (path, flags | O_CREAT | O_EXCL, 0644, NULL);
    if (fd < 0 || st.st_nlink == 1)
        return fd;
    close (fd);
    errno = EPERM;
    return -1;
}

static int spawn_worker (struct executor *x, struct local_worker *w)
{
    char *argv[] = { x->dl,   (char *)"worker", (char *)"--slot",
                     w->slot, (char *)"--",     x->sweep->dir,
                     NULL };
    char log[PATH_MAX];
    int fd;

    snprintf (log, sizeof (log), "%s/workers/%s.log", x->sweep->dir, w->slot);
    fd = open_worker_log (log);
    w->tries++;
    w->pid = fd < 0 ? -1
                    : subprocess_spawn (&(struct spawn){ .argv = argv,
                                                         .io = { -1, fd, fd },
                                                         .death_signal = SIGTERM,
                                                         .prepare = prepare_worker,
                                                         .arg = &(struct worker_start){ x, w } });
    if (fd >= 0)
        close (fd);
    return w->pid < 0 ? -1 : 0;
}

/* ---- slots ---- */

static int free_place (const struct executor *x)
{
    int place = 0;

    for (long i = 0; i < x->npool; i++)
        if (x->pool[i].pid > 0 && x->pool[i].place == place) {
            place++;
            i = -1;
        }
    return place;
}

static long workers_alive (const struct executor *x)
{
    long n = 0;

    for (long i = 0; i < x->npool; i++)
        n += x->pool[i].pid > 0;
    return n;
}

/* Return the number of workers that are not about to leave. */
static long workers_staying (const struct executor *x)
{
    long n = 0;

    for (long i = 0; i < x->npool; i++)
        n += x->pool[i].pid > 0 && !sweep_retires (x->sweep, x->pool[i].slot);
    return n;
}

/* Return how many of the workers can have GPUs of their own, and warn if not all can. */
static long workers_with_gpus (const struct executor *x, long workers)
{
    int each = (int)x->sweep->exp->resources->node_gpus;
    int places = devices_places (x->devices, each);

    if (places >= workers)
        return workers;
    complain ("%d of %ld workers: this machine has %d GPU%s, a trial needs %d", places, workers,
              x->devices->ngpus, x->devices->ngpus == 1 ? "" : "s", each);
    return places;
}

static int add_worker (struct executor *x)
{
    struct local_worker *w;

    XGROW (x->pool, (size_t)x->npool);
    w = &x->pool[x->npool];
    *w = (struct local_worker){ .place = free_place (x) };
    /* unique: another dl on this machine may work at the same sweep */
    snprintf (w->slot, sizeof (w->slot), "local-%ld-%ld", (long)getpid (), ++x->npool);
    return spawn_worker (x, w);
}

int local_check (const struct experiment *e, struct slurmdl_error *err)
{
    struct devices *d;
    int ngpus;

    errno = EINVAL;
    if (experiment_has_ranks (e))
        return errorf (err, "'resources.nodes_per_trial' and 'ranks_per_node' need "
                            "Slurm: leave out --local, or set them to 1");
    if (e->resources->node_gpus == 0)
        return 0;
    d = local_devices ();
    ngpus = d->ngpus;
    devices_destroy (d);
    errno = EINVAL;
    if (ngpus < e->resources->node_gpus)
        return errorf (err,
                       "a trial needs %lld GPU%s ('resources.%s') "
                       "and this machine has %d",
                       (long long)e->resources->node_gpus, e->resources->node_gpus == 1 ? "" : "s",
                       experiment_gpus_key (e), ngpus);
    return 0;
}

static int start_local (struct executor *x, struct slurmdl_error *err)
{
    if (local_check (x->sweep->exp, err) < 0)
        return -1;
    x->devices = local_devices ();
    x->wanted = x->sweep->wanted;
    x->workers = x->granted = workers_with_gpus (x, x->workers);
    while (x->npool < x->workers)
        if (add_worker (x) < 0)
            return errorf (err, "cannot start a worker: %s", inside_error (errno));
    return 0;
}

/* ---- while they work ---- */

static bool ends_for_good (int status)
{
    if (!WIFEXITED (status))
        return false;
    switch (WEXITSTATUS (status)) {
    case EXIT_OK:
    case EXIT_PARKED:
    case EXIT_EXCLUDED:
    case EXIT_SMALL:
    case EXIT_FAULT:
    case EXIT_USAGE:
    case EXIT_NOT_FOUND:
    case EXIT_DAMAGED:
        return true;
    }
    return false;
}

static void note_worker_end (struct executor *x, const struct local_worker *w)
{
    char path[PATH_MAX], text[1024];
    char *why;

    if (snprintf (path, sizeof (path), "%s/workers/%s.log", x->sweep->dir, w->slot)
        >= (int)sizeof (path))
        return;
    text[file_tail (inside_open (path, O_RDONLY, 0, NULL), text, sizeof (text) - 1)] = '\0';
    if ((why = slurm_last_line (text)))
        policy_text (why);
    snprintf (x->note, sizeof (x->note), "a worker ended early%s%.300s; see %s", why ? ": " : "",
              why ?: "", path);
}

static void reap_worker (struct executor *x, struct local_worker *w)
{
    int status;

    if (w->pid <= 0 || waitpid (w->pid, &status, WNOHANG) != w->pid)
        return;
    w->pid = 0;
    if (!ends_for_good (status) && w->tries < LOCAL_TRIES_MAX)
        spawn_worker (x, w);
    else if (WIFEXITED (status) && WEXITSTATUS (status) == EXIT_EXCLUDED)
        x->excluded = true;
    else if (!WIFEXITED (status) || (WEXITSTATUS (status) && WEXITSTATUS (status) != EXIT_FAULT))
        note_worker_end (x, w);
}

/* Surplus workers learn from the log that they must leave. */
static void scale_local (struct executor *x)
{
    long wanted = x->sweep->wanted;

    if (wanted == x->wanted || wanted == 0 || x->sweep->state != SWEEP_RUNNING)
        return;
    x->wanted = wanted;
    x->workers = workers_with_gpus (x, trust_workers (x->sweep));
    for (long n = workers_staying (x); n < x->workers; n++)
        if (add_worker (x) < 0)
            return;
}

static bool tick_local (struct executor *x)
{
    for (long i = 0; i < x->npool; i++)
        reap_worker (x, &x->pool[i]);
    scale_local (x);
    return workers_alive (x) > 0;
}

static void leave_local (struct executor *x)
{
    printf (
        "stopping the workers: trials save checkpoints; run 'dl resume --local %s' to continue\n",
        x->sweep->word);
    fflush (stdout);
    for (long i = 0; i < x->npool; i++)
        if (x->pool[i].pid > 0)
            kill (x->pool[i].pid, SIGTERM);
    for (long i = 0; i < x->npool; i++)
        if (x->pool[i].pid > 0)
            waitpid (x->pool[i].pid, NULL, 0);
}

static void close_local (struct executor *x)
{
    /* no other worker may ever run on this machine to do it */
    if (x->npool > 0)
        scratch_clean ();
    free (x->pool);
    x->pool = NULL;
    devices_destroy (x->devices);
    x->devices = NULL;
}

const struct executor_ops executor_local = {
    "local", start_local, tick_local, leave_local, close_local,
};
