/* SPDX-License-Identifier: Apache-2.0 */
/* Find since when the GPUs of a node have had no work.  Pure. */
#include "launcher/monitor/monitor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* In per cent, which drivers report as whole numbers. */
static const double least_busy = 1;

static const struct idle_gpu *find_idle (const struct idle_gpus *g, int index)
{
    for (int i = 0; i < g->n; i++)
        if (g->gpus[i].index == index)
            return &g->gpus[i];
    return NULL;
}

void idle_take (struct idle_gpus *g, const struct gpu_readings *r, double now)
{
    const struct idle_gpus before = *g;
    bool gap = !(now - g->last <= g->limit * 3 / 4);

    g->n = r->n;
    g->last = now;
    for (int i = 0; i < r->n; i++) {
        struct idle_gpu *gpu = &g->gpus[i];
        const struct idle_gpu *was = gap ? NULL : find_idle (&before, r->gpu[i].index);
        bool idle = r->gpu[i].v[GPU_BUSY] < least_busy;
        *gpu = (struct idle_gpu){ .index = r->gpu[i].index, .since = idle ? now : NAN };
        if (idle && was && !isnan (was->since))
            gpu->since = was->since;
        gpu->is_long = now - gpu->since >= g->limit;
        gpu->is_new = gpu->is_long && !(was && was->is_long);
    }
}

bool idle_all (const struct idle_gpus *g)
{
    for (int i = 0; i < g->n; i++)
        if (!g->gpus[i].is_long)
            return false;
    return g->n > 0;
}

/* ---- report ---- */

/* A list of numbers, for example "0, 1". */
struct idle_list {
    char text[256];
    int n;
};

static void list_idle_number (struct idle_list *l, long number)
{
    size_t len = strlen (l->text);

    snprintf (l->text + len, sizeof (l->text) - len, "%s%ld", l->n++ ? ", " : "", number);
}

static void list_idle_ranks (struct idle_list *l, const struct gpu_readings *r, int gpu,
                             long (*rank_of) (const void *arg, pid_t pid), const void *arg)
{
    long last = -1;

    for (int i = 0; i < r->nprocesses; i++) {
        long rank = r->process[i].gpu == gpu ? rank_of (arg, r->process[i].pid) : -1;
        if (rank >= 0 && rank != last)
            list_idle_number (l, rank);
        last = rank >= 0 ? rank : last;
    }
}

bool idle_text (const struct idle_gpus *g, const struct gpu_readings *r, const char *node,
                double now, long (*rank_of) (const void *arg, pid_t pid), const void *arg,
                char *buf, size_t size)
{
    struct idle_list gpus = { "" }, ranks = { "" };
    char since[32] = "?", who[300] = "";
    double latest = 0;
    time_t began;
    struct tm tm;

    for (int i = 0; i < g->n; i++)
        if (g->gpus[i].is_new) {
            list_idle_number (&gpus, g->gpus[i].index);
            list_idle_ranks (&ranks, r, g->gpus[i].index, rank_of, arg);
            latest = fmax (latest, g->gpus[i].since);
        }
    *buf = '\0';
    if (gpus.n == 0)
        return false;
    began = time (NULL) - (time_t)(now - latest);
    if (localtime_r (&began, &tm))
        strftime (since, sizeof (since), "%H:%M:%S", &tm);
    if (ranks.n > 0)
        snprintf (who, sizeof (who), " (rank%s %s)", ranks.n == 1 ? "" : "s", ranks.text);
    snprintf (buf, size, "GPU%s %s of %s%s %s been idle since %s, for %.0f min",
              gpus.n == 1 ? "" : "s", gpus.text, node, who, gpus.n == 1 ? "has" : "have", since,
              floor ((now - latest) / 60));
    return true;
}
