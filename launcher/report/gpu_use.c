/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts made of their GPUs, from the files of srun --dl-monitor. */
#include "launcher/report/data.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/monitor/advise.h"
#include "launcher/monitor/usage.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* ---- busy over time ---- */

/* One GPU, while its file is read. */
struct gpu_track {
    int gpu;
    double last, since; /* value, and the time up to which it is counted */
};

struct series_reading {
    double begin, end; /* of the attempt, s since the epoch */
    struct gpu_track tracks[GPUS_MAX];
    int n;
    long long step;
    double time, before; /* of this and the last sample */
    double sum[GPU_BINS], weight[GPU_BINS];
};

static void put_busy (struct series_reading *g, double from, double to, double busy)
{
    double width = (g->end - g->begin) / GPU_BINS;

    if (!(width > 0))
        return;
    for (int i = 0; i < GPU_BINS; i++) {
        double low = fmax (from, g->begin + i * width);
        double high = fmin (to, g->begin + (i + 1) * width);
        if (high > low) {
            g->sum[i] += busy * (high - low);
            g->weight[i] += high - low;
        }
    }
}

static struct gpu_track *find_track (struct series_reading *g, int gpu)
{
    for (int i = 0; i < g->n; i++)
        if (g->tracks[i].gpu == gpu)
            return &g->tracks[i];
    if (g->n == GPUS_MAX)
        return NULL;
    g->tracks[g->n] = (struct gpu_track){ .gpu = gpu, .last = NAN, .since = g->time };
    return &g->tracks[g->n++];
}

/* A value is of the time since the sample before; one that did not change is
 * not written.
 */
static int take_row (const struct slurmdl_row *row, void *arg)
{
    struct series_reading *g = arg;
    struct gpu_track *t;
    int gpu, end = 0;

    if (row->step != g->step) {
        g->before = g->time;
        g->step = row->step;
        g->time = row->time;
        if (isnan (g->before))
            g->before = g->time;
    }
    if (sscanf (row->name, "gpu/%d/busy%n", &gpu, &end) != 1 || !end || row->name[end]
        || !(t = find_track (g, gpu)))
        return 0;
    if (!isnan (t->last))
        put_busy (g, t->since, g->before, t->last);
    put_busy (g, fmax (g->before, t->since), g->time, row->value);
    t->last = row->value;
    t->since = g->time;
    return 0;
}

static void read_file (struct series_reading *g, const char *path)
{
    g->n = 0;
    g->step = -1;
    g->time = g->before = NAN;
    slurmdl_metrics_read (path, take_row, g, NULL);
    for (int i = 0; i < g->n; i++)
        if (!isnan (g->tracks[i].last))
            put_busy (g, g->tracks[i].since, g->time, g->tracks[i].last);
}

static void read_series (struct gpu_attempt *a, const char *dir, double begin, double end)
{
    struct series_reading g = { .begin = begin, .end = end };
    char path[PATH_MAX];
    DIR *d = opendir (dir);
    struct dirent *e;

    while (d && (e = readdir (d))) {
        size_t n = strlen (e->d_name);
        if (n < 4 || strcmp (e->d_name + n - 3, ".h5") || e->d_name[0] == '.')
            continue;
        snprintf (path, sizeof (path), "%s/%s", dir, e->d_name);
        read_file (&g, path);
    }
    if (d)
        closedir (d);
    for (int i = 0; i < GPU_BINS; i++)
        a->bins[i] = g.weight[i] > 0 ? g.sum[i] / g.weight[i] : NAN;
}

/* ---- one step ---- */

static void add_advice (struct gpu_use *u, const struct usage *usage)
{
    const struct pattern_row *rows[8];
    int n = advise (usage, rows, 8);

    for (int i = 0; i < n; i++) {
        size_t k = 0;
        while (k < u->nadvice && strcmp (u->advice[k].text, rows[i]->text))
            k++;
        if (k == ADVICE_MAX)
            continue;
        if (k == u->nadvice) {
            snprintf (u->advice[k].text, sizeof (u->advice[k].text), "%s", rows[i]->text);
            u->nadvice++;
        }
        u->advice[k].n++;
    }
}

static void measure (struct gpu_attempt *a, const struct usage *usage)
{
    double busy = 0;
    int known = 0;

    a->memory = NAN;
    for (size_t k = 0; k < usage->nnodes; k++)
        for (int i = 0; i < usage->nodes[k].ngpus; i++) {
            const struct usage_gpu *g = &usage->nodes[k].gpus[i];
            a->gpus++;
            if (!isnan (g->busy)) {
                busy += g->busy;
                known++;
            }
            if (g->memory_size > 0)
                a->memory = fmax (a->memory, g->memory / g->memory_size);
        }
    a->busy = known ? busy / known : NAN;
}

static int read_step (struct gpu_use *u, const struct report *r, size_t i, const char *dir)
{
    const struct report_attempt *of = &r->attempts[i];
    double created = r->sweeps[r->trials[of->trial].sweep].s->created;
    struct gpu_attempt a = { .attempt = i };
    struct usage usage;

    if (usage_read (&usage, dir, NULL) < 0)
        return 0;
    measure (&a, &usage);
    add_advice (u, &usage);
    usage_free (&usage);
    if (a.gpus)
        read_series (&a, dir, created + of->begin, created + of->end);
    if (array_reserve (&u->list, &u->capacity, u->n, 1, sizeof (a)) < 0)
        return -1;
    u->list[u->n++] = a;
    return 0;
}

/* ---- all ---- */

static int read_attempt (struct gpu_use *u, const struct report *r, size_t i)
{
    const struct report_attempt *of = &r->attempts[i];
    const struct report_trial *t = &r->trials[of->trial];
    char dir[PATH_MAX], step[PATH_MAX + 300];
    struct dirent *e;
    int rv = 0;
    DIR *d;

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", r->sweeps[t->sweep].s->dir, t->number,
              of->number);
    d = opendir (dir);
    while (rv == 0 && d && (e = readdir (d))) {
        if (strncmp (e->d_name, "dl-monitor-", 11))
            continue;
        snprintf (step, sizeof (step), "%s/%s", dir, e->d_name);
        rv = read_step (u, r, i, step);
    }
    if (d)
        closedir (d);
    return rv;
}

static int by_number (const void *a, const void *b)
{
    const struct gpu_advice *x = a, *y = b;

    return (x->n < y->n) - (x->n > y->n);
}

int gpu_use_read (struct gpu_use *u, const struct report *r)
{
    for (size_t i = 0; i < r->nattempts; i++)
        if (read_attempt (u, r, i) < 0)
            return -1;
    qsort (u->advice, u->nadvice, sizeof (*u->advice), by_number);
    return 0;
}

void gpu_use_free (struct gpu_use *u)
{
    free (u->list);
    *u = (struct gpu_use){ 0 };
}

/* ---- JSON ---- */

/* A letter a bin: A is 0 %, 8 is 100 %, _ is not known. */
static json_t *bins_json (const struct gpu_attempt *a)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345678";
    char text[GPU_BINS + 1] = "";

    for (int i = 0; i < GPU_BINS; i++) {
        double part = fmin (fmax (a->bins[i], 0), 100) / 100;
        text[i] = isnan (a->bins[i]) ? '_' : letters[lround (part * 60)];
    }
    return json_string (text);
}

json_t *gpu_use_json (const struct gpu_use *u)
{
    json_t *attempt = json_array (), *gpus = json_array (), *busy = json_array ();
    json_t *memory = json_array (), *bins = json_array (), *advice = json_array ();

    for (size_t i = 0; i < u->n; i++) {
        json_array_append_new (attempt, json_integer ((json_int_t)u->list[i].attempt));
        json_array_append_new (gpus, json_integer (u->list[i].gpus));
        json_array_append_new (busy, rounded_to_json (u->list[i].busy, 3));
        json_array_append_new (memory, rounded_to_json (u->list[i].memory, 3));
        json_array_append_new (bins, bins_json (&u->list[i]));
    }
    for (size_t i = 0; i < u->nadvice; i++)
        json_array_append_new (advice,
                               json_pack ("[i, s]", (int)u->advice[i].n, u->advice[i].text));
    return json_pack ("{s:o, s:o, s:o, s:o, s:o, s:o}", "attempt", attempt, "gpus", gpus, "busy",
                      busy, "memory", memory, "bins", bins, "advice", advice);
}
