/* SPDX-License-Identifier: Apache-2.0 */
/* Start workers as processes of this machine. */
#include "launcher/config/experiment.h"
#include "launcher/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/config/log_policy.h"
#include "launcher/config/resources.h"
#include "launcher/config/worker_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/devices.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/temporary_folder.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

struct local_worker {
    char slot[48];
    bool ended; /* for good */
};

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

/* Return the number of workers that are not about to leave. */
static long workers_staying (const struct executor *x)
{
    long n = 0;

    for (size_t i = 0; i < x->nstarted; i++)
        n += !x->started[i]->ended && !sweep_retires (x->sweep, x->started[i]->slot);
    return n;
}

/* Return how many of the workers can have GPUs of their own, and warn if not all can. */
static long workers_with_gpus (const struct executor *x, long workers)
{
    int each = (int)x->sweep->exp->resources->node_gpus;
    int gpus = each > 0 ? local_gpus () : 0;
    long places = each > 0 ? gpus / each : workers;

    if (places >= workers)
        return workers;
    complain ("%ld of %ld workers: this machine has %d GPU%s, a trial needs %d", places, workers,
              gpus, gpus == 1 ? "" : "s", each);
    return places;
}

/* Workers are bound only if there are cores for all. */
static int cores_of_worker (const struct executor *x)
{
    int64_t cpus = x->sweep->exp->resources->cpus;

    return x->workers * cpus <= cores_count () ? (int)cpus : 0;
}

static int add_worker (struct executor *x)
{
    struct local_worker *w = xcalloc (1, sizeof (*w));
    char *words[] = { x->dl,   (char *)"worker", (char *)"--slot",
                      w->slot, (char *)"--",     x->sweep->dir,
                      NULL };
    struct local_process what = { .words = words,
                                  .gpus = (int)x->sweep->exp->resources->node_gpus,
                                  .cores = cores_of_worker (x),
                                  .of = w };
    char log[PATH_MAX];

    *w = (struct local_worker){ .ended = true };
    XGROW (x->started, x->nstarted);
    x->started[x->nstarted++] = w;
    /* unique: another dl on this machine may work at the same sweep */
    snprintf (w->slot, sizeof (w->slot), "local-%ld-%zu", (long)getpid (), x->nstarted);
    snprintf (log, sizeof (log), "%s/workers/%s.log", x->sweep->dir, w->slot);
    if ((what.output = open_worker_log (log)) < 0)
        return -1;
    if (local_pool_start (x->pool, &what) < 0)
        return -1;
    w->ended = false;
    return 0;
}

int local_check (const struct experiment *e, struct slurmdl_error *err)
{
    int gpus;

    errno = EINVAL;
    if (experiment_has_ranks (e))
        return errorf (err, "'resources.nodes_per_trial' and 'ranks_per_node' need "
                            "Slurm: leave out --local, or set them to 1");
    if (e->resources->node_gpus == 0 || (gpus = local_gpus ()) >= e->resources->node_gpus)
        return 0;
    errno = EINVAL;
    return errorf (err, "a trial needs %lld GPU%s ('resources.%s') and this machine has %d",
                   (long long)e->resources->node_gpus, e->resources->node_gpus == 1 ? "" : "s",
                   experiment_gpus_key (e), gpus);
}

/* ---- while they work ---- */

/* Whether to start a worker again. */
static bool goes_on (int status)
{
    if (!WIFEXITED (status))
        return true;
    switch (WEXITSTATUS (status)) {
    case EXIT_OK:
    case EXIT_PARKED:
    case EXIT_EXCLUDED:
    case EXIT_SMALL:
    case EXIT_FAULT:
    case EXIT_USAGE:
    case EXIT_NOT_FOUND:
    case EXIT_DAMAGED:
        return false;
    }
    return true;
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

static void end_worker (void *arg, void *of, int status)
{
    struct local_worker *w = of;
    struct executor *x = arg;

    w->ended = true;
    if (WIFEXITED (status) && WEXITSTATUS (status) == EXIT_EXCLUDED)
        x->excluded = true;
    else if (!WIFEXITED (status) || (WEXITSTATUS (status) && WEXITSTATUS (status) != EXIT_FAULT))
        note_worker_end (x, w);
}

static int start_local (struct executor *x, struct slurmdl_error *err)
{
    static const struct local_pool_ops ops = { goes_on, end_worker };

    if (local_check (x->sweep->exp, err) < 0)
        return -1;
    x->wanted = x->sweep->wanted;
    x->workers = x->granted = workers_with_gpus (x, x->workers);
    x->pool = local_pool_create (&ops, x, x->workers);
    setenv ("DL_PIN", x->sweep->pin, 1);
    for (long i = 0; i < x->workers; i++)
        if (add_worker (x) < 0)
            return errorf (err, "cannot start a worker: %s", inside_error (errno));
    return 0;
}

/* Surplus workers learn from the log that they must leave.  They keep their GPUs until then. */
static void scale_local (struct executor *x)
{
    long wanted = x->sweep->wanted;

    if (x->sweep->state != SWEEP_RUNNING)
        return;
    if (wanted != x->wanted && wanted != 0) {
        x->wanted = wanted;
        x->workers = workers_with_gpus (x, trust_workers (x->sweep));
        x->missing = x->workers - workers_staying (x);
        local_pool_resize (x->pool, x->workers);
    }
    while (x->missing > 0
           && local_pool_has_gpus (x->pool, (int)x->sweep->exp->resources->node_gpus)) {
        x->missing--;
        if (add_worker (x) < 0)
            complain ("cannot start a worker: %s", inside_error (errno));
    }
}

static bool tick_local (struct executor *x)
{
    local_pool_reap (x->pool);
    scale_local (x);
    return local_pool_reap (x->pool) > 0;
}

static void leave_local (struct executor *x)
{
    printf (
        "stopping the workers: trials save checkpoints; run 'dl resume --local %s' to continue\n",
        x->sweep->word);
    fflush (stdout);
    local_pool_end (x->pool, (double)x->sweep->exp->worker->grace + LOCAL_END_MORE);
}

static void close_local (struct executor *x)
{
    /* no other worker may ever run on this machine to do it */
    if (x->nstarted > 0)
        scratch_clean ();
    local_pool_destroy (x->pool);
    for (size_t i = 0; i < x->nstarted; i++)
        free (x->started[i]);
    free (x->started);
    x->pool = NULL;
    x->started = NULL;
}

const struct executor_ops executor_local = {
    "local", start_local, tick_local, leave_local, close_local,
};
