/* SPDX-License-Identifier: Apache-2.0 */
/* Time of results_write(): bench/results FOLDER TRIALS [ROWS [ADDED]].
 * FOLDER, which must not exist, gets TRIALS finished trials of ROWS metrics
 * each; the file is written anew, again, and after ADDED further trials.
 */
#include "launcher/results/results_file.h"
#include "tests/bench/bench.h"
#include "tests/launcher/made.h"

static const char conf[] =
    "name = \"t\"; entrypoint = \"true\";\n"
    "searcher = { name = \"random\"; metric = \"loss\"; max_trials = 9; };\n"
    "hyperparameters = {\n"
    "    lr = { type = \"log\"; base = 10.0; minval = -4; maxval = 0; };\n"
    "    layers = { type = \"int\"; minval = 1; maxval = 9; };\n"
    "    kind = { type = \"categorical\"; vals = (\"sgd\", \"adam\"); };\n"
    "};\n";

/* One metrics file by the library, and copies of it. */
static char image[1 << 20];
static size_t image_size;

static int make_image (const struct sweep *s, int rows)
{
    const char *dir = made_attempt (s, 1, 1);
    struct slurmdl_metrics *m = slurmdl_metrics_create (dir, NULL);
    char path[300];
    ssize_t n = -1;
    int fd;

    for (int i = 0; m && i < rows; i++)
        slurmdl_metrics_log (m, i % 2 ? "loss" : "accuracy", i / 2, 1.0 / i);
    if (!m || slurmdl_metrics_destroy (m) < 0)
        return -1;
    snprintf (path, sizeof (path), "%s/metrics.h5", dir);
    if ((fd = open (path, O_RDONLY | O_CLOEXEC)) >= 0) {
        n = read (fd, image, sizeof (image));
        close (fd);
    }
    image_size = n > 0 ? (size_t)n : 0;
    return n > 0 ? 0 : -1;
}

static int copy_image (const struct sweep *s, long n)
{
    char path[300];
    ssize_t put = -1;
    int fd;

    snprintf (path, sizeof (path), "%s/metrics.h5", made_attempt (s, n, 1));
    fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0) {
        put = write (fd, image, image_size);
        close (fd);
    }
    return put == (ssize_t)image_size ? 0 : -1;
}

static int fill (struct sweep *s, int rows)
{
    if (make_image (s, rows) < 0)
        return -1;
    for (long n = 1; n <= s->ntrials; n++) {
        struct sweep_trial *t = &s->trials[n - 1];
        if (n > 1 && copy_image (s, n) < 0)
            return -1;
        t->hparams = json_pack ("{s:f, s:i, s:s}",
                                "lr",
                                1.0 / (double)n,
                                "layers",
                                (int)(n % 9 + 1),
                                "kind",
                                n % 2 ? "sgd" : "adam");
        t->host = strdup ("node0123");
        made_result (s, n, 1, 1, 1.0 / (double)n);
    }
    return 0;
}

static int
measure (struct sweep *s, long ntrials, const char *path, const char *what)
{
    struct slurmdl_error err = { "" };
    struct stat st;
    double begin = now ();

    s->ntrials = ntrials;
    if (results_write (s, path, &err) < 0 || stat (path, &st) < 0) {
        fprintf (stderr, "%s\n", err.text);
        return -1;
    }
    printf ("%-12s %6ld trials  %8.1f ms  %9lld bytes\n",
            what,
            ntrials,
            (now () - begin) * 1e3,
            (long long)st.st_size);
    return 0;
}

int main (int argc, char **argv)
{
    long n = argc > 2 ? atol (argv[2]) : 0;
    int rows = argc > 3 ? atoi (argv[3]) : 20;
    long added = argc > 4 ? atol (argv[4]) : 10;
    struct sweep *s;
    char path[300];
    int rv = 1;

    if (n < 1 || added < 0 || mkdir (argv[1], 0777) < 0) {
        fprintf (stderr, "usage: results FOLDER TRIALS [ROWS [ADDED]]\n");
        return 2;
    }
    snprintf (path, sizeof (path), "%s/results.h5", argv[1]);
    if ((s = made_sweep (argv[1], conf, n + added)) && fill (s, rows) == 0
        && measure (s, n, path, "anew") == 0
        && measure (s, n, path, "unchanged") == 0
        && measure (s, n + added, path, "some added") == 0)
        rv = 0;
    s->ntrials = n + added;
    sweep_close (s);
    return rv;
}
