/* SPDX-License-Identifier: Apache-2.0 */
/* metrics FOLDER: measure the time to log a scalar, and to read 1 M of them.  Prints JSON: wall
 * clock and CPU time of the logging thread in ns per scalar, and the time to read in ms.
 * tests/bench/metrics.py compares it with other loggers.
 *
 * metrics FOLDER RATE SECONDS: log RATE scalars a second (0: as many as possible) for so long.
 * Prints how many were lost, the rate that was reached, and how many ms the slowest 100 took.
 */
#include "runtime/slurmdl.h"
#include "tests/bench/bench.h"

enum { NAMES = 10, BURST = 10000, ROWS = 1000000, AT_ONCE = 100 };

struct times {
    double wall, cpu;
};

/* Log half of the rows by handle or by name.  Flush between bursts, so that pending writes do not
 * slow down logging.
 */
static struct times log_rows (struct slurmdl *run, int by_handle)
{
    struct slurmdl_metric *handles[NAMES];
    char names[NAMES][32];
    struct times sum = { 0, 0 };

    for (int i = 0; i < NAMES; i++) {
        snprintf (names[i], sizeof (names[i]), "training/metric_%d", i);
        handles[i] = slurmdl_metric (run, names[i]);
    }
    for (int k = 0; k < ROWS / 2 / BURST; k++) {
        double wall = now ();
        double cpu = seconds_of (CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < BURST; i++)
            if (by_handle)
                slurmdl_log_to (handles[i % NAMES], i / NAMES, i);
            else
                slurmdl_log (run, names[i % NAMES], i / NAMES, i);
        sum.wall += now () - wall;
        sum.cpu += seconds_of (CLOCK_THREAD_CPUTIME_ID) - cpu;
        slurmdl_flush (run, NULL);
    }
    sum.wall *= 1e9 / (ROWS / 2);
    sum.cpu *= 1e9 / (ROWS / 2);
    return sum;
}

/* Log in batches of AT_ONCE scalars at the given rate. */
static void log_steadily (struct slurmdl *run, double rate, double duration)
{
    struct slurmdl_metric *metric = slurmdl_metric (run, "loss");
    double begin = now ();
    double at = begin;
    double longest = 0;
    int64_t n = 0;

    while (at - begin < duration) {
        double before = now ();
        for (int i = 0; i < AT_ONCE; i++, n++)
            slurmdl_log_to (metric, n, 0.5);
        at = now ();
        longest = at - before > longest ? at - before : longest;
        while (rate > 0 && (double)n > (at - begin) * rate)
            at = now ();
    }
    printf ("{\"rows\": %lld, \"lost\": %lld, \"rate\": %.0f, "
            "\"longest_ms\": %.2f}\n",
            (long long)n, (long long)slurmdl_lost (run), (double)n / (at - begin), longest * 1e3);
}

static int count_row (const struct slurmdl_row *r, void *arg)
{
    *(double *)arg += r->value == r->value;
    return 0;
}

int main (int argc, char **argv)
{
    struct slurmdl_error err = { "" };
    struct slurmdl *run = argc == 2 || argc == 4 ? slurmdl_open (argv[1], &err) : NULL;
    struct times handle;
    struct times name;
    double n = 0;
    double begin;
    char path[4096];

    if (!run) {
        fprintf (stderr, "usage: metrics FOLDER [RATE SECONDS]\n%s\n", err.text);
        return 64;
    }
    if (argc == 4) {
        log_steadily (run, atof (argv[2]), atof (argv[3]));
        return slurmdl_close (run) < 0;
    }
    handle = log_rows (run, 1);
    name = log_rows (run, 0);
    snprintf (path, sizeof (path), "%s/metrics.h5", slurmdl_dir (run));
    if (slurmdl_close (run) < 0)
        return 1;
    begin = now ();
    if (slurmdl_metrics_read (path, count_row, &n, &err) < 0 || n != ROWS) {
        fprintf (stderr, "%.0f rows: %s\n", n, err.text);
        return 1;
    }
    printf ("{\"handle_ns\": %.1f, \"handle_cpu_ns\": %.1f, \"name_ns\": %.1f, "
            "\"name_cpu_ns\": %.1f, \"read_ms\": %.1f}\n",
            handle.wall, handle.cpu, name.wall, name.cpu, (now () - begin) * 1e3);
    return 0;
}
