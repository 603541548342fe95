/* SPDX-License-Identifier: Apache-2.0 */
/* Summarize what a monitored step used, from the files of its nodes. */
#include "launcher/monitor/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/error.h"
#include "runtime/metrics/file.h"
#include "runtime/slurmdl.h"

/* ---- the series in one file ---- */

struct track {
    char name[NAME_SIZE];
    double first, first_time;
    double last, last_time;
    double most;
    double integral; /* up to last_time */
    double ended;    /* time at which it fell to 0, or NaN */
};

/* More than a node with 1,000 ranks has.  The limit bounds the linear searches. */
enum { TRACKS_MAX = 16384 };

struct tracks {
    struct track *list;
    size_t n, next;
    long long step;
    double begin, time, before; /* of the first, this and the previous sample */
    double since;               /* count everything before this time as one sample */
};

static struct track *find_usage_track (struct tracks *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++) {
        size_t at = (t->next + i) % t->n; /* names come in the same order in each sample */
        if (!strcmp (t->list[at].name, name)) {
            t->next = at + 1;
            return &t->list[at];
        }
    }
    return NULL;
}

static struct track *add_track_value (struct tracks *t, const char *name, double value)
{
    struct track *k;

    if (t->n == TRACKS_MAX)
        return NULL;
    XGROW (t->list, t->n);
    k = &t->list[t->n++];
    *k = (struct track){ .first = value,
                         .first_time = t->time,
                         .last = value,
                         .last_time = t->time,
                         .most = value,
                         .ended = NAN };
    snprintf (k->name, sizeof (k->name), "%s", name);
    return k;
}

/* Restart the track at 'time' with the value that it had then. */
static void forget_before (struct track *k, double time)
{
    k->first = k->most = k->last;
    k->first_time = k->last_time = time;
    k->integral = 0;
}

static int take_usage_row (const struct slurmdl_row *row, void *arg)
{
    struct tracks *t = arg;
    struct track *k;

    if (isnan (t->begin))
        t->begin = t->before = row->time;
    else if (row->step != t->step)
        t->before = t->time;
    t->step = row->step;
    t->time = row->time;
    if (!(k = find_usage_track (t, row->name)))
        return add_track_value (t, row->name, row->value) ? 0 : -1;
    if (t->before < t->since)
        forget_before (k, t->before);
    /* a value covers the time since the previous sample */
    k->integral += k->last * (t->before - k->last_time) + row->value * (row->time - t->before);
    k->ended = row->value == 0 ? t->before : NAN;
    k->last = row->value;
    k->last_time = row->time;
    k->most = fmax (k->most, row->value);
    return 0;
}

__attribute__ ((format (printf, 2, 3))) static const struct track *track (const struct tracks *t,
                                                                          const char *fmt, ...)
{
    char name[NAME_SIZE];
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (name, sizeof (name), fmt, ap);
    va_end (ap);
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp (t->list[i].name, name))
            return &t->list[i];
    return NULL;
}

static double track_mean (const struct track *k, double until)
{
    double seconds = k ? until - k->first_time : 0;

    if (!k)
        return NAN;
    if (seconds <= 0)
        return k->first;
    if (until <= k->last_time) /* it has ended, so its last value is 0 */
        return k->integral / seconds;
    return (k->integral + k->last * (until - k->last_time)) / seconds;
}

static double track_rate (const struct track *k, double until)
{
    double seconds = k ? until - k->first_time : 0;

    return seconds > 0 ? (k->last - k->first) / seconds : NAN;
}

static double track_most (const struct track *k)
{
    return k ? k->most : NAN;
}

/* ---- ranks ---- */

static void fill_usage_rank (struct usage_rank *r, const struct tracks *t)
{
    const struct track *processes = track (t, "rank/%ld/processes", r->rank);
    double until = isnan (processes->ended) ? t->time : processes->ended;

#define RATE(what) track_rate (track (t, "rank/%ld/" what, r->rank), until)
#define MEAN(what) track_mean (track (t, "rank/%ld/" what, r->rank), until)
#define MOST(what) track_most (track (t, "rank/%ld/" what, r->rank))
    r->seconds = until - processes->first_time;
    r->ended = !isnan (processes->ended);
    r->cores = RATE ("cpu_user") + RATE ("cpu_system");
    r->cores_given = MOST ("cores");
    r->busiest = MEAN ("busiest");
    r->memory = MOST ("memory");
    r->processes = MOST ("processes");
    r->read = RATE ("read");
    r->write = RATE ("write");
    r->storage_read = RATE ("storage_read");
    r->storage_write = RATE ("storage_write");
    r->blocked = MEAN ("blocked");
    r->switches = RATE ("switches");
    r->gpu_busy = r->gpu_memory = NAN;
#undef RATE
#undef MEAN
#undef MOST
}

static void add_usage_ranks (struct usage *u, size_t node, const struct tracks *t)
{
    for (size_t i = 0; i < t->n; i++) {
        char end[16];
        long rank;
        /* skip a name that sscanf() accepts but we never write, such as "rank/01/processes" */
        if (sscanf (t->list[i].name, "rank/%ld/%15s", &rank, end) != 2 || strcmp (end, "processes")
            || track (t, "rank/%ld/processes", rank) != &t->list[i])
            continue;
        XGROW (u->ranks, u->nranks);
        u->ranks[u->nranks] = (struct usage_rank){ .rank = rank, .node = node };
        fill_usage_rank (&u->ranks[u->nranks++], t);
    }
}

/* ---- GPUs ---- */

static void fill_gpu_usage (struct usage_gpu *g, const struct tracks *t, double until)
{
#define MEAN(what) track_mean (track (t, "gpu/%d/" what, g->index), until)
#define MOST(what) track_most (track (t, "gpu/%d/" what, g->index))
    const struct track *energy = track (t, "gpu/%d/energy", g->index);
    const struct track *idle = track (t, "gpu/%d/idle", g->index);

    g->rank = -1;
    g->busy = MEAN ("busy");
    g->sm = MEAN ("sm");
    g->tensor = MEAN ("tensor");
    g->memory = MOST ("memory");
    g->memory_size = MOST ("memory_size");
    g->power = track_rate (energy, until);
    if (isnan (g->power) || g->power <= 0)
        g->power = MEAN ("power");
    g->temperature = MOST ("temperature");
    g->hot = MEAN ("hot");
    g->capped = MEAN ("capped");
    g->idle = idle ? idle->last : NAN;
#undef MEAN
#undef MOST
}

static void add_gpus (struct usage_node *n, const struct tracks *t)
{
    for (size_t i = 0; i < t->n && n->ngpus < GPUS_MAX; i++) {
        char end[24];
        int gpu;
        if (sscanf (t->list[i].name, "gpu/%d/%23s", &gpu, end) != 2 || strcmp (end, "memory_size"))
            continue;
        n->gpus[n->ngpus].index = gpu;
        fill_gpu_usage (&n->gpus[n->ngpus++], t, t->time);
    }
}

static struct usage_gpu *find_gpu (struct usage_node *n, int index)
{
    for (int i = 0; i < n->ngpus; i++)
        if (n->gpus[i].index == index)
            return &n->gpus[i];
    return NULL;
}

/* Normally the driver reports which processes use a GPU.  If it does not, assign the
 * GPUs to the ranks in order, as --dl-bind and most programs do.
 */
static void share_gpus (struct usage *u, size_t first, struct usage_node *n)
{
    size_t ranks = u->nranks - first;

    if (ranks == 0 || (size_t)n->ngpus % ranks)
        return;
    for (int i = 0; i < n->ngpus; i++)
        n->gpus[i].rank = u->ranks[first + (size_t)i / ((size_t)n->ngpus / ranks)].rank;
}

static void own_gpus (struct usage *u, size_t first, struct usage_node *n, const struct tracks *t)
{
    bool known = false;

    for (size_t i = 0; i < t->n; i++) {
        struct usage_gpu *g;
        long rank;
        int gpu;
        if (sscanf (t->list[i].name, "rank/%ld/gpu/%d", &rank, &gpu) == 2
            && (g = find_gpu (n, gpu))) {
            g->rank = g->rank < 0 || g->rank == rank ? rank : -1;
            known = true;
        }
    }
    if (!known)
        share_gpus (u, first, n);
}

static void give_gpus (struct usage *u, size_t first, struct usage_node *n)
{
    for (size_t i = first; i < u->nranks; i++) {
        struct usage_rank *r = &u->ranks[i];
        double busy = 0;
        for (int k = 0; k < n->ngpus; k++)
            if (n->gpus[k].rank == r->rank) {
                r->gpus++;
                busy += n->gpus[k].busy;
                r->gpu_memory = fmax (r->gpu_memory, n->gpus[k].memory);
            }
        if (r->gpus > 0)
            r->gpu_busy = busy / r->gpus;
    }
}

/* ---- the node ---- */

static void fill_memory (struct usage_node *n, const struct tracks *t)
{
    const struct track *job = track (t, "node/job_memory");

    n->job_memory = job;
    n->memory = track_most (job ? job : track (t, "node/memory"));
    n->limit = track_most (track (t, job ? "node/limit" : "node/memory_size"));
}

/* Find the interface or port with the highest utilization. */
static void fill_network (struct usage_node *n, const struct tracks *t)
{
    n->network = n->link = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct track *k = &t->list[i];
        size_t len = strlen (k->name);
        double bytes, share;
        if ((strncmp (k->name, "net/", 4) && strncmp (k->name, "ib/", 3))
            || (strcmp (k->name + len - 3, "/rx") && strcmp (k->name + len - 3, "/tx")))
            continue;
        bytes = track_rate (k, t->time);
        share = bytes / track_most (track (t, "%.*s/speed", (int)len - 3, k->name));
        if (bytes > n->network)
            n->network = bytes;
        if (share > n->link)
            n->link = share;
    }
}

static int by_usage_rank (const void *a, const void *b)
{
    long x = ((const struct usage_rank *)a)->rank;
    long y = ((const struct usage_rank *)b)->rank;

    return (x > y) - (x < y);
}

static void add_usage_node (struct usage *u, const char *name, const struct tracks *t)
{
    size_t first = u->nranks;
    struct usage_node *n;
    const struct track *cpu = track (t, "monitor/cpu");

    XGROW (u->nodes, u->nnodes);
    n = &u->nodes[u->nnodes++];
    *n = (struct usage_node){ .seconds = t->time - t->begin, .time = t->time };
    snprintf (n->name, sizeof (n->name), "%s", name);
    fill_memory (n, t);
    fill_network (n, t);
    n->pressure_io = track_rate (track (t, "node/pressure_io"), t->time);
    n->pressure_memory = track_rate (track (t, "node/pressure_memory"), t->time);
    n->monitor = track_rate (cpu, t->time);
    n->lost = track (t, "monitor/lost") ? track_most (track (t, "monitor/lost")) : 0;
    u->seconds = fmax (u->seconds, n->seconds);
    add_gpus (n, t);
    add_usage_ranks (u, u->nnodes - 1, t);
    if (u->nranks > first)
        qsort (u->ranks + first, u->nranks - first, sizeof (*u->ranks), by_usage_rank);
    own_gpus (u, first, n, t);
    give_gpus (u, first, n);
}

/* ---- the folder ---- */

/* If a node's monitor restarted, there are several files (NODE.1.h5 and so on); only
 * the newest counts.
 */
static bool is_newest (const char *dir, const char *file)
{
    char path[PATH_MAX + NAME_MAX + 32];
    char stem[NAME_MAX + 1];
    char *dot;
    int k = 0;

    snprintf (stem, sizeof (stem), "%s", file);
    stem[strlen (stem) - 3] = '\0';
    if ((dot = strrchr (stem, '.')) && strspn (dot + 1, "0123456789") == strlen (dot + 1)) {
        k = atoi (dot + 1);
        *dot = '\0';
    }
    snprintf (path, sizeof (path), "%s/%s.%d.h5", dir, stem, k + 1);
    return access (path, F_OK) < 0;
}

static int is_series_file (const struct dirent *e)
{
    size_t n = strlen (e->d_name);

    return n > 3 && n < 64 && *e->d_name != '.' && !strcmp (e->d_name + n - 3, ".h5");
}

/* Add the totals of a node after the last row of its file. */
static void end_series_file (struct usage *u, const char *name, struct tracks *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].last_time < t->since)
            forget_before (&t->list[i], t->list[i].last_time);
    if (t->n > 0)
        add_usage_node (u, name, t);
}

static void read_series_file (struct usage *u, const char *dir, const char *file, double since)
{
    struct tracks t = { .begin = NAN, .since = since };
    char path[PATH_MAX + NAME_MAX];
    char name[64];

    snprintf (path, sizeof (path), "%s/%s", dir, file);
    snprintf (name, sizeof (name), "%.*s", (int)strlen (file) - 3, file);
    if (slurmdl_metrics_read (path, take_usage_row, &t, NULL) == 0)
        end_series_file (u, name, &t);
    free (t.list);
}

int usage_read_since (struct usage *u, const char *dir, double since, struct slurmdl_error *err)
{
    struct dirent **list;
    int n = scandir (dir, &list, is_series_file, versionsort);

    *u = (struct usage){ NULL };
    if (n < 0)
        return errorf (err, "%s: %s", dir, strerror (errno));
    for (int i = 0; i < n; i++) {
        if (is_newest (dir, list[i]->d_name))
            read_series_file (u, dir, list[i]->d_name, since);
        free (list[i]);
    }
    free (list);
    if (u->nnodes == 0) {
        errno = ENOENT;
        return errorf (err, "%s: no samples yet", dir);
    }
    if (u->nranks > 0)
        qsort (u->ranks, u->nranks, sizeof (*u->ranks), by_usage_rank);
    return 0;
}

int usage_read (struct usage *u, const char *dir, struct slurmdl_error *err)
{
    return usage_read_since (u, dir, -INFINITY, err);
}

void usage_free (struct usage *u)
{
    free (u->ranks);
    free (u->nodes);
    *u = (struct usage){ NULL };
}
