/* SPDX-License-Identifier: Apache-2.0 */
/* Current GPU utilization of running trials, from the files of --dl-monitor. */
#include "launcher/progress/progress.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sweep/queries.h"
#include "runtime/storage/inside.h"

static double newest_sample_time (const struct usage *u)
{
    double time = -INFINITY;

    for (size_t i = 0; i < u->nnodes; i++)
        time = fmax (time, u->nodes[i].time);
    return time;
}

/* Open a directory, but do not follow symbolic links inside an experiment. */
static DIR *open_inside_folder (const char *dir)
{
    int fd = inside_open_any (dir, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);

    if (fd >= 0 && !d)
        close (fd);
    return d;
}

void monitored_steps (const char *dir,
                      void (*f) (const char *step, const struct usage *usage, void *arg), void *arg)
{
    double now = (double)time (NULL);
    DIR *d = open_inside_folder (dir);
    char path[PATH_MAX + NAME_MAX];
    struct dirent *e;
    struct usage u;

    while (d && (e = readdir (d))) {
        if (strncmp (e->d_name, MONITOR_PREFIX, strlen (MONITOR_PREFIX)))
            continue;
        snprintf (path, sizeof (path), "%s/%s", dir, e->d_name);
        if (usage_read_since (&u, path, now - GPU_WINDOW, NULL) < 0)
            continue;
        if (newest_sample_time (&u) >= now - GPU_STALE)
            f (path, &u, arg);
        usage_free (&u);
    }
    if (d)
        closedir (d);
}

void monitored_trials (const struct sweep *s,
                       void (*f) (const char *step, const struct usage *usage, void *arg),
                       void *arg)
{
    char dir[PATH_MAX];

    for (long i = 1; i <= s->ntrials; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        if (t->state != TRIAL_OPEN)
            continue;
        snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, i, t->over + 1);
        monitored_steps (dir, f, arg);
    }
}

struct fill_sums {
    int gpus, known;
    double busy, memory, size;
};

static void add_monitored_step (const char *step, const struct usage *u, void *arg)
{
    struct fill_sums *sum = arg;

    (void)step;
    for (size_t k = 0; k < u->nnodes; k++)
        for (int i = 0; i < u->nodes[k].ngpus; i++) {
            const struct usage_gpu *g = &u->nodes[k].gpus[i];
            sum->gpus++;
            if (!isnan (g->busy)) {
                sum->busy += g->busy;
                sum->known++;
            }
            if (g->memory_size > 0 && !isnan (g->memory)) {
                sum->memory += g->memory;
                sum->size += g->memory_size;
            }
        }
}

struct gpu_fill gpu_fill_look (const struct sweep *s)
{
    struct fill_sums sum = { 0 };

    monitored_trials (s, add_monitored_step, &sum);
    return (struct gpu_fill){
        .gpus = sum.gpus,
        .busy = sum.known ? sum.busy / sum.known : NAN,
        .memory = sum.size > 0 ? sum.memory / sum.size : NAN,
    };
}
