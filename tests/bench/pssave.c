/* SPDX-License-Identifier: Apache-2.0 */
/* How long pushes and pulls take while a parameter server saves.
 *
 *     tests/bench/pssave [ROUNDS [MEGABYTES]]
 *
 * A server with a dense table of MEGABYTES (200), and as much state of its
 * rule, and one worker, which pushes and pulls rows of another table and
 * counts iterations, mode async.  In turns, ROUNDS (5) times: 2 s without a
 * save, then a save is asked for, and it goes on until that is there.  The
 * median, the 99th percentile and the longest of an iteration of either kind,
 * of all rounds, and how long a save took.
 */
#include "runtime/base/clock.h"
#include "runtime/slurmdl_ps.h"
#include "tests/bench/bench.h"

enum { ROW = 64, ROWS = 500, SAMPLES_MAX = 1 << 20 };

static int rounds = 5;
static long megabytes = 200;
static char dir[] = "/tmp/dl-bench.XXXXXX";

struct samples {
    double *v;
    size_t n;
};

static void fail (const char *what, const struct slurmdl_error *err)
{
    fprintf (stderr, "%s: %s\n", what, err ? err->text : strerror (errno));
    _exit (1);
}

static struct slurmdl_ps *join (const char *role)
{
    struct slurmdl_ps_options o = { .role = role,
                                    .servers = 1,
                                    .workers = 1,
                                    .dir = dir,
                                    .mode = SLURMDL_PS_ASYNC,
                                    .log_bytes = -1 }; /* asks for no save */
    struct slurmdl_error err;
    struct slurmdl_ps *ps = slurmdl_ps_open (&o, &err);

    if (!ps)
        fail ("open", &err);
    return ps;
}

static void server (void)
{
    struct slurmdl_ps *ps = join ("server");
    struct slurmdl_error err;

    if (slurmdl_ps_serve (ps, &err) < 0)
        fail ("serve", &err);
    slurmdl_ps_close (ps);
    _exit (0);
}

/* One iteration. */
static double step (struct slurmdl_ps *ps, int table, int64_t k)
{
    static uint64_t ids[ROWS];
    static float rows[ROWS * ROW], gradients[ROWS * ROW];
    struct slurmdl_error err;
    double began = monotonic ();

    for (uint64_t i = 0; i < ROWS; i++)
        ids[i] = (i * 7919 + (uint64_t)k * 104729) % 100000;
    if (slurmdl_ps_pull_rows (ps, table, ids, ROWS, rows, NULL, &err) < 0
        || slurmdl_ps_push_rows (ps, table, ids, ROWS, gradients, NULL, &err)
               < 0
        || slurmdl_ps_clock (ps, &err) < 0 || slurmdl_ps_wait (ps, 0, &err) < 0)
        fail ("step", &err);
    return monotonic () - began;
}

static void add (struct samples *s, double seconds)
{
    if (s->n < SAMPLES_MAX)
        s->v[s->n++] = seconds;
}

static void report (const char *what, struct samples *s)
{
    qsort (s->v, s->n, sizeof (*s->v), ascending);
    printf ("%s %6zu iterations: median %7.3f ms, 99 %% %7.3f ms, "
            "longest %8.3f ms\n",
            what,
            s->n,
            s->v[s->n / 2] * 1e3,
            s->v[s->n * 99 / 100] * 1e3,
            s->v[s->n - 1] * 1e3);
}

static void make_big (struct slurmdl_ps *ps, uint64_t n)
{
    struct slurmdl_ps_table t = {
        .name = "big", .n = n, .rule = SLURMDL_PS_ADAGRAD, .rate = 0.1
    };
    struct slurmdl_error err;
    float *v = malloc (n * sizeof (*v));
    int big;

    for (uint64_t i = 0; i < n; i++)
        v[i] = (float)(i % 1009);
    if ((big = slurmdl_ps_table (ps, &t, v, &err)) < 0
        || slurmdl_ps_push (ps, big, v, NULL, &err) < 0
        || slurmdl_ps_clock (ps, &err) < 0 || slurmdl_ps_wait (ps, 0, &err) < 0)
        fail ("table", &err);
    free (v);
}

static void worker (void)
{
    struct slurmdl_ps *ps = join ("worker");
    struct slurmdl_ps_table t = { .name = "rows",
                                  .row = ROW,
                                  .rule = SLURMDL_PS_ADAGRAD,
                                  .rate = 0.1,
                                  .high = 1 };
    struct samples quiet = { malloc (SAMPLES_MAX * sizeof (double)), 0 };
    struct samples saving = { malloc (SAMPLES_MAX * sizeof (double)), 0 };
    struct samples saves = { malloc (SAMPLES_MAX * sizeof (double)), 0 };
    int table = slurmdl_ps_table (ps, &t, NULL, NULL);
    int64_t k = 0;

    make_big (ps, (uint64_t)megabytes * 1000000 / sizeof (float));
    while (k < 300)
        step (ps, table, k++);
    for (int r = 0; r < rounds; r++) {
        double began = monotonic ();
        int64_t before = slurmdl_ps_saved (ps);
        while (monotonic () - began < 2)
            add (&quiet, step (ps, table, k++));
        began = monotonic ();
        slurmdl_ps_save (ps, NULL);
        while (slurmdl_ps_saved (ps) == before)
            add (&saving, step (ps, table, k++));
        add (&saves, monotonic () - began);
    }
    report ("without a save:", &quiet);
    report ("during a save: ", &saving);
    printf ("a save took %.2f s (median)\n", median (saves.v, saves.n));
    fflush (stdout);
    slurmdl_ps_close (ps);
    _exit (0);
}

int main (int argc, char **argv)
{
    int failed = 0;
    int status;

    if (argc > 1 && atoi (argv[1]) > 0)
        rounds = atoi (argv[1]);
    if (argc > 2 && atol (argv[2]) > 0)
        megabytes = atol (argv[2]);
    if (!mkdtemp (dir))
        fail ("bench", NULL);
    if (fork () == 0)
        server ();
    if (fork () == 0)
        worker ();
    while (wait (&status) > 0)
        failed |= status;
    if (failed)
        fprintf (stderr, "bench: a process has failed\n");
    return execlp ("rm", "rm", "-rf", dir, (char *)NULL);
}
