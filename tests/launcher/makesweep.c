/* SPDX-License-Identifier: Apache-2.0 */
/* makesweep DIR FILE [POINTS]: quickly create the directory that a finished sweep of the experiment
 * FILE would leave in DIR, on a simulated clock.  Prints its name.  POINTS is the number of metric
 * rows of a full training; without it, trials have no files.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/monitor/monitor.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "runtime/slurmdl.h"

/* Skip fsync(), which is slow: these files need not survive a crash. */
int fsync (int fd)
{
    (void)fd;
    return 0;
}

int fdatasync (int fd)
{
    return fsync (fd);
}

/* Return MAKE_TIME (seconds since the epoch) if it is set, so that the output of commands is
 * reproducible.
 */
int clock_gettime (clockid_t which, struct timespec *t)
{
    const char *made = getenv ("MAKE_TIME");

    if (!made || which != CLOCK_REALTIME)
        return (int)syscall (SYS_clock_gettime, which, t);
    *t = (struct timespec){ .tv_sec = atol (made) };
    return 0;
}

enum { WORKERS_MAX = 64, BATCH = 200 };

struct worker {
    char slot[32];
    struct peer_membership *peer;
    long trial, attempt; /* 0: idle */
    int64_t length;
    double begin, end;
};

struct maker {
    struct sweep *s;
    struct worker workers[WORKERS_MAX];
    int n;
    long points;
    double now;
    struct event batch[BATCH];
    size_t nbatch;
    unsigned seed;
};

static double chance (struct maker *m)
{
    m->seed = m->seed * 1664525u + 1013904223u;
    return (double)(m->seed >> 8) / (1 << 24);
}

static void die (const char *what, const struct slurmdl_error *err)
{
    fprintf (stderr, "make: %s: %s\n", what, err ? err->text : strerror (errno));
    exit (1);
}

/* ---- events ---- */

static void flush (struct maker *m)
{
    struct slurmdl_error err = { "" };

    if (m->nbatch && log_append (m->s->log, m->batch, m->nbatch, &err) != 0)
        die ("log", &err);
    for (size_t i = 0; i < m->nbatch; i++) {
        free (m->batch[i].x);
        free (m->batch[i].metrics);
    }
    m->nbatch = 0;
}

/* Takes over x and metrics. */
static void put (struct maker *m, struct event e)
{
    struct slurmdl_error err = { "" };

    e.time = m->now;
    if (sweep_apply (&e, m->s, &err) < 0)
        die ("event", &err);
    m->batch[m->nbatch++] = e;
    if (m->nbatch == BATCH)
        flush (m);
}

/* ---- files of trials ---- */

static double place (const struct param *p, double x)
{
    double low = p->min, high = p->max;

    if (isnan (x))
        return 0.3;
    if (p->type == PARAM_CATEGORICAL)
        return x / (double)p->choices;
    if (p->type == PARAM_LOG)
        x = log (x) / log (p->base);
    return high > low ? (x - low) / (high - low) : 0;
}

/* The first parameter has the most weight. */
static double value_at (const struct maker *m, long trial, double step, size_t metric)
{
    const struct experiment *e = m->s->exp;
    const double *x = sweep_trial (m->s, trial)->x;
    double v = 1 / (1 + 0.3 * step), weight = 2;

    for (size_t k = 0; k < e->space->nparams; k++, weight /= 2) {
        double u = place (&e->space->params[k], x[k]) - (metric ? 0.8 : 0.3);
        v += weight * u * u;
    }
    v += 0.01 * sin ((double)trial * 7 + step * 3);
    if (trial % 97 == 13 && step > 5)
        return trial % 2 ? NAN : INFINITY;
    return (metric ? e->search->config.larger[metric] : !e->search->config.smaller_is_better)
               ? 2 - v
               : v;
}

static void log_metrics (struct maker *m, const struct worker *w, int64_t from, const char *dir)
{
    struct slurmdl_metrics *f = slurmdl_metrics_create (dir, NULL);
    double length = (double)w->length;
    long n = m->points * (w->length - from) / m->s->exp->search->config.max_length;

    if (!f)
        die (dir, NULL);
    for (long i = 1; i <= n || i == 1; i++) {
        double step = (double)from + (length - (double)from) * (double)i / (double)(n > 0 ? n : 1);
        for (size_t k = 0; k < sweep_metrics (m->s); k++)
            slurmdl_metrics_log (f, sweep_metric (m->s, k), (int64_t)(step * 10),
                                 value_at (m, w->trial, step, k));
    }
    slurmdl_metrics_destroy (f);
}

static void log_gpus (struct maker *m, const struct worker *w, const char *dir)
{
    struct metrics_file_about about = { .trial = w->trial, .attempt = w->attempt };
    char path[PATH_MAX];
    struct series *s;

    snprintf (path, sizeof (path), "%s/dl-monitor-%ld.0", dir, w->trial);
    mkdir (path, 0777);
    if (!(s = series_create (path, -1, "n1", &about, 10000, NULL)))
        die (path, NULL);
    for (int i = 0; i <= 20; i++) {
        for (int g = 0; g < experiment_gpus (m->s->exp); g++) {
            series_put (s, SERIES_GAUGE, i < 4 ? 5 : 30 + 60 * chance (m), "gpu/%d/busy", g);
            series_put (s, SERIES_GAUGE, 20e9, "gpu/%d/memory", g);
            series_put (s, SERIES_GAUGE, 80e9, "gpu/%d/memory_size", g);
        }
        series_end (s, w->begin + (w->end - w->begin) * i / 20);
    }
    series_destroy (s);
}

static void make_files (struct maker *m, const struct worker *w)
{
    int64_t from = sweep_trial (m->s, w->trial)->length;
    char dir[PATH_MAX];

    if (!m->points)
        return;
    snprintf (dir, sizeof (dir), "%s/trials/%04ld", m->s->dir, w->trial);
    mkdir (dir, 0777);
    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", m->s->dir, w->trial, w->attempt);
    mkdir (dir, 0777);
    log_metrics (m, w, from, dir);
    if (experiment_gpus (m->s->exp) && w->trial % 3 == 0)
        log_gpus (m, w, dir);
}

/* ---- workers ---- */

/* Returns false if the searcher has no work now. */
static bool begin (struct maker *m, struct worker *w)
{
    size_t n = m->s->exp->space->nparams;
    double *x = calloc (n + 1, sizeof (*x));
    struct search_op op;

    if (searcher_ask (m->s->searcher, &op, x) != SEARCH_RUN) {
        free (x);
        return false;
    }
    put (m, (struct event){ .op = EVENT_BEGIN,
                            .by = w->slot,
                            .owner = peer_self (w->peer)->nonce,
                            .trial = op.trial,
                            .length = op.length,
                            .from = op.from,
                            .from_length = op.from_length,
                            .x = x,
                            .nx = op.fresh ? n : 0 });
    w->trial = op.trial;
    w->attempt = sweep_trial (m->s, op.trial)->over + 1;
    w->length = op.length;
    w->begin = m->now;
    w->end = m->now + (1 + chance (m)) * (5 + (double)op.length);
    return true;
}

static void again (struct maker *m, struct worker *w)
{
    w->attempt++;
    w->begin = m->now;
    w->end = m->now + (1 + chance (m)) * (5 + (double)w->length);
}

static void give_result (struct maker *m, struct worker *w)
{
    size_t n = sweep_metrics (m->s);
    double *v = calloc (n, sizeof (*v));

    for (size_t k = 0; k < n; k++)
        v[k] = value_at (m, w->trial, (double)w->length, k);
    make_files (m, w);
    put (m, (struct event){ .op = EVENT_RESULT,
                            .by = w->slot,
                            .trial = w->trial,
                            .attempt = w->attempt,
                            .length = w->length,
                            .metric = v[0],
                            .metrics = v,
                            .nmetrics = n > 1 ? n : 0,
                            .seconds = w->end - w->begin,
                            .host = "n1" });
    w->trial = 0;
}

/* Most trials with a high value of the first parameter fail. */
static bool fails (struct maker *m, const struct worker *w)
{
    const struct experiment *e = m->s->exp;

    return place (&e->space->params[0], sweep_trial (m->s, w->trial)->x[0]) > 0.9
           && chance (m) < 0.7;
}

static void end (struct maker *m, struct worker *w)
{
    struct event e = { .by = w->slot,
                       .trial = w->trial,
                       .attempt = w->attempt,
                       .seconds = w->end - w->begin,
                       .host = "n2" };

    m->now = w->end;
    if (m->s->exp->space->nparams && fails (m, w)) {
        e.op = EVENT_FAIL;
        e.why = "out of memory: tried to allocate 2.5 GiB </script><b>x";
        put (m, e);
        if (sweep_trial (m->s, w->trial)->tries.failed > m->s->exp->failures->max_restarts) {
            put (m, (struct event){
                        .op = EVENT_EXIT, .by = w->slot, .trial = w->trial, .why = e.why });
            w->trial = 0;
        } else
            again (m, w);
    } else if (chance (m) < 0.03 && w->attempt < 3) {
        e.op = w->trial % 2 ? EVENT_PARK : EVENT_LOST;
        e.why = e.op == EVENT_LOST ? "its worker is dead" : NULL;
        if (e.op == EVENT_LOST)
            e.seconds = 0;
        put (m, e);
        again (m, w);
    } else
        give_result (m, w);
}

static struct worker *next_end (struct maker *m)
{
    struct worker *found = NULL;

    for (int i = 0; i < m->n; i++)
        if (m->workers[i].trial && (!found || m->workers[i].end < found->end))
            found = &m->workers[i];
    return found;
}

/* Leave the running attempts half done. */
static void leave (struct maker *m)
{
    for (int i = 0; i < m->n; i++) {
        struct worker w = m->workers[i];
        if (!w.trial)
            continue;
        w.length -= (w.length - sweep_trial (m->s, w.trial)->length) / 2;
        w.end = m->now;
        make_files (m, &w);
    }
}

static void search (struct maker *m)
{
    struct worker *w;

    do {
        for (int i = 0; i < m->n; i++)
            if (!m->workers[i].trial && !begin (m, &m->workers[i]))
                break;
        if ((w = next_end (m)))
            end (m, w);
    } while (w && !(getenv ("STOP_AFTER") && m->s->nresults >= atol (getenv ("STOP_AFTER"))));
    if (getenv ("STOP_AFTER"))
        leave (m);
    else
        put (m, (struct event){ .op = EVENT_END, .by = "w", .state = "completed" });
    flush (m);
}

static void open_experiment (struct maker *m, const char *root, const char *file)
{
    struct slurmdl_error err = { "" };
    struct experiment *e;
    struct problems p;
    char dir[PATH_MAX];
    char id[SWEEP_ID_SIZE];

    problems_open (&p);
    if (!(e = experiment_read_edited (file, NULL, &p))) {
        problems_close (&p);
        fprintf (stderr, "%s\n", p.text);
        exit (2);
    }
    if (sweep_create (e, root, dir, sizeof (dir), id, &err) < 0
        || !(m->s = sweep_open (dir, &p, &err)))
        die (root, &err);
    problems_close (&p);
    free (p.text);
    m->n = e->resources->workers > 0 && e->resources->workers < WORKERS_MAX
               ? (int)e->resources->workers
               : 8;
    experiment_destroy (e);
    m->now = m->s->created;
    for (int i = 0; i < m->n; i++) {
        snprintf (m->workers[i].slot, sizeof (m->workers[i].slot), "local_%d", i + 1);
        if (!(m->workers[i].peer = peer_create (dir, m->workers[i].slot, &err)))
            die (dir, &err);
    }
}

int main (int argc, char **argv)
{
    struct maker m = { .points = argc > 3 ? atol (argv[3]) : 0, .seed = 1 };

    if (argc < 3)
        return 2;
    open_experiment (&m, argv[1], argv[2]);
    search (&m);
    puts (m.s->dir);
    for (int i = 0; i < m.n; i++)
        peer_destroy (m.workers[i].peer);
    sweep_close (m.s);
    return 0;
}
