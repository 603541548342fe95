/* SPDX-License-Identifier: Apache-2.0 */
/* A server or worker of tests/cluster/pshosts.t: counts, whose each push is
 * seen.
 *
 *     tests/runtime/ps/pswork ITERATIONS MILLISECONDS WORKERS LOG
 *
 * Worker w adds 1 to each element w, w + workers, ... of a dense table, and to
 * column w of all rows of a sparse one, in each iteration, which takes
 * MILLISECONDS; so what it pulls is the number of its iterations, all the
 * time, unless a push is lost or counted twice.  When WORKERS of them have
 * come to the end each looks at what the others have pushed: of one that was
 * lost between what it had acknowledged and what it had begun, in LOG.W.  Each
 * process writes what it does into LOG.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/slurmdl_ps.h"

enum { N = 200001, ROWS = 100, WORKERS_MAX = 8, END_SECONDS = 60 };

struct mark {
    int64_t acknowledged, begun; /* iterations */
};

struct work {
    struct slurmdl_ps *ps;
    int64_t iterations;
    long milliseconds, wanted;
    const char *log;
    long me, workers;
    int counts, rows, ends; /* tables */
    float *g, *v;
    uint64_t ids[ROWS];
    float row_g[ROWS * WORKERS_MAX], row_v[ROWS * WORKERS_MAX];
};

static char who[128];

static void
say (const char *log, const char *what, const char *text, int64_t number)
{
    int fd = open (log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    char line[512];
    int n = snprintf (line,
                      sizeof (line),
                      "%s %s%s%s %" PRId64 "\n",
                      who,
                      what,
                      *text ? ": " : "",
                      text,
                      number);

    if (fd < 0 || write (fd, line, (size_t)n) != n)
        perror (log);
    close (fd);
}

static void mark (const struct work *w, int64_t acknowledged, int64_t begun)
{
    struct mark m = { acknowledged, begun };
    char path[4096];
    int fd;

    snprintf (path, sizeof (path), "%s.%ld", w->log, w->me);
    fd = open (path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || pwrite (fd, &m, sizeof (m), 0) != sizeof (m))
        perror (path);
    close (fd);
}

static struct mark marked (const struct work *w, long worker)
{
    struct mark m = { 0, 0 };
    char path[4096];
    int fd;

    snprintf (path, sizeof (path), "%s.%ld", w->log, worker);
    fd = open (path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread (fd, &m, sizeof (m), 0) != sizeof (m))
        perror (path);
    close (fd);
    return m;
}

static int make_tables (struct work *w, struct slurmdl_error *err)
{
    struct slurmdl_ps_table counts = { .name = "counts",
                                       .n = N,
                                       .rule = SLURMDL_PS_ADD };
    struct slurmdl_ps_table rows = { .name = "rows",
                                     .row = (uint32_t)w->workers,
                                     .rule = SLURMDL_PS_ADD };
    struct slurmdl_ps_table ends = { .name = "ends",
                                     .n = (uint64_t)w->workers,
                                     .rule = SLURMDL_PS_ADD };

    w->g = calloc (N, sizeof (float));
    w->v = calloc (N, sizeof (float));
    if (!w->g || !w->v)
        return -1;
    for (long i = w->me; i < N; i += w->workers)
        w->g[i] = 1;
    for (long i = 0; i < ROWS; i++) {
        w->ids[i] = (uint64_t)i;
        w->row_g[i * w->workers + w->me] = 1;
    }
    w->counts = slurmdl_ps_table (w->ps, &counts, NULL, err);
    w->rows = slurmdl_ps_table (w->ps, &rows, NULL, err);
    w->ends = slurmdl_ps_table (w->ps, &ends, NULL, err);
    return w->counts < 0 || w->rows < 0 || w->ends < 0 ? -1 : 0;
}

static int pull (struct work *w, struct slurmdl_error *err)
{
    return slurmdl_ps_pull (w->ps, w->counts, w->v, NULL, err) < 0
                   || slurmdl_ps_pull_rows (
                          w->ps, w->rows, w->ids, ROWS, w->row_v, NULL, err)
                          < 0
               ? -1
               : 0;
}

/* What was pulled of this worker's. */
static int check (const struct work *w,
                  long worker,
                  int64_t least,
                  int64_t most,
                  struct slurmdl_error *err)
{
    double x = 0;
    long at = -1;

    for (long i = worker; i < N; i += w->workers)
        if (w->v[i] < (float)least || w->v[i] > (float)most)
            x = w->v[at = i];
    for (long i = worker; i < ROWS * w->workers; i += w->workers)
        if (w->row_v[i] < (float)least || w->row_v[i] > (float)most)
            x = w->row_v[at = i];
    if (at < 0)
        return 0;
    errno = ERANGE;
    snprintf (err->text,
              sizeof (err->text),
              "WRONG: element %ld of worker %ld is %g, not %lld to %lld",
              at,
              worker,
              x,
              (long long)least,
              (long long)most);
    return -1;
}

static void nap (long milliseconds)
{
    struct timespec t = { milliseconds / 1000, milliseconds % 1000 * 1000000 };

    nanosleep (&t, NULL);
}

static int iterate (struct work *w, int64_t k, struct slurmdl_error *err)
{
    if (pull (w, err) < 0 || check (w, w->me, k, k, err) < 0)
        return -1;
    nap (w->milliseconds);
    mark (w, k, k + 1);
    if (slurmdl_ps_push (w->ps, w->counts, w->g, NULL, err) < 0
        || slurmdl_ps_push_rows (
               w->ps, w->rows, w->ids, ROWS, w->row_g, NULL, err)
               < 0
        || slurmdl_ps_clock (w->ps, err) < 0
        || slurmdl_ps_wait (w->ps, 0, err) < 0)
        return -1;
    mark (w, k + 1, k + 1);
    if ((k + 1) % 10 == 0)
        say (w->log, "iteration", "", k + 1);
    return 0;
}

/* Until all that are left have come to the end. */
static int meet (struct work *w, float *ends, struct slurmdl_error *err)
{
    float one[WORKERS_MAX] = { 0 };
    time_t until = time (NULL) + END_SECONDS;
    float sum = 0;

    one[w->me] = 1;
    if (slurmdl_ps_push (w->ps, w->ends, one, NULL, err) < 0)
        return -1;
    while (sum < (float)w->wanted && time (NULL) < until) {
        if (slurmdl_ps_clock (w->ps, err) < 0
            || slurmdl_ps_pull (w->ps, w->ends, ends, NULL, err) < 0)
            return -1;
        sum = 0;
        for (long i = 0; i < w->workers; i++)
            sum += ends[i];
        nap (10);
    }
    return 0;
}

static int train (struct work *w, struct slurmdl_error *err)
{
    float ends[WORKERS_MAX] = { 0 };

    if (make_tables (w, err) < 0)
        return -1;
    for (int64_t k = slurmdl_ps_iteration (w->ps); k < w->iterations; k++)
        if (iterate (w, k, err) < 0)
            return -1;
    if (meet (w, ends, err) < 0 || pull (w, err) < 0)
        return -1;
    for (long i = 0; i < w->workers; i++) {
        struct mark m = { w->iterations, w->iterations };
        if (ends[i] == 0)
            m = marked (w, i);
        if (check (w, i, m.acknowledged, m.begun, err) < 0)
            return -1;
    }
    return 0;
}

static int work (struct work *w, struct slurmdl_error *err)
{
    w->me = slurmdl_ps_index (w->ps);
    w->workers = slurmdl_ps_workers (w->ps);
    return w->workers > WORKERS_MAX ? -1 : train (w, err);
}

int main (int argc, char **argv)
{
    struct work w = { .ps = NULL };
    struct slurmdl_ps_stats stats = { 0 };
    struct slurmdl_error err = { "" };
    char host[64] = "";
    int rv = -1;

    if (argc != 5)
        return 2;
    w.iterations = atoll (argv[1]);
    w.milliseconds = atol (argv[2]);
    w.wanted = atol (argv[3]);
    w.log = argv[4];
    gethostname (host, sizeof (host) - 1);
    snprintf (who,
              sizeof (who),
              "%s %s on %s",
              getenv ("DL_ROLE") ? getenv ("DL_ROLE") : "?",
              getenv ("DL_ROLE_INDEX") ? getenv ("DL_ROLE_INDEX") : "?",
              host);
    say (w.log, "is process", "", getpid ());
    if (!(w.ps = slurmdl_ps_open (NULL, &err)))
        goto out;
    rv = slurmdl_ps_is_server (w.ps) ? slurmdl_ps_serve (w.ps, &err)
                                     : work (&w, &err);
    slurmdl_ps_stats (w.ps, &stats);
out:
    say (w.log,
         rv < 0 ? "has failed" : "has ended",
         rv < 0 ? err.text : "",
         rv < 0 ? errno : (int64_t)stats.lost);
    slurmdl_ps_close (w.ps);
    free (w.g);
    free (w.v);
    return rv < 0;
}
