/* SPDX-License-Identifier: Apache-2.0 */
/* Measure how long a worker takes to open an experiment and make its first decision.
 *
 *     attach EXPERIMENT.conf FOLDER N
 *         create an experiment with N finished trials, and attach to it five times
 *     attach EXPERIMENT.conf FOLDER N METRICS.h5
 *         create an experiment whose attempts have this file, and print its directory
 */
#include "launcher/config/hparams.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sys/small_file.h"
#include "tests/bench/bench.h"
#include "tests/launcher/made.h"

/* Write events as a worker does: a result and the next trial in one entry. */
static int fill (struct sweep *s, long n)
{
    double *x = calloc (s->exp->space->nparams + 1, sizeof (*x));
    struct event events[2];
    struct search_op op;
    int rv = 0;

    for (long i = 0; n > 0 && i <= n && rv == 0; i++) {
        size_t k = 0;
        if (i > 0)
            events[k++] = (struct event){ .op = EVENT_RESULT,
                                          .by = "1_1",
                                          .trial = i,
                                          .attempt = 1,
                                          .length = 1,
                                          .seconds = 1,
                                          .host = "node1",
                                          .metric = drand48 () };
        if (i < n) {
            op = (struct search_op){ .trial = i + 1, .fresh = true };
            op.length = 1;
            for (size_t d = 0; d < s->exp->space->nparams; d++)
                x[d] = drand48 ();
            events[k++] = (struct event){ .op = EVENT_BEGIN,
                                          .by = "1_1",
                                          .trial = op.trial,
                                          .length = 1,
                                          .owner = "0123",
                                          .x = x,
                                          .nx = s->exp->space->nparams,
                                          .hparams = hparams_json (s->exp, x) };
        }
        rv = sweep_publish (s, events, k, NULL);
        if (i < n)
            json_decref (events[k - 1].hparams);
    }
    free (x);
    return rv;
}

static int fill_attempts (const struct sweep *s, const char *metrics)
{
    size_t size = 0;
    char *image = file_read_now (metrics, 1 << 20, &size, NULL, NULL);
    char path[PATH_MAX];
    bool good = image;

    for (long n = 1; n <= s->ntrials && good; n++) {
        int fd;
        snprintf (path, sizeof (path), "%s/metrics.h5", made_attempt (s, n, 1));
        fd = open (path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        good = fd >= 0 && write (fd, image, size) == (ssize_t)size;
        close (fd);
    }
    free (image);
    return good ? 0 : -1;
}

static int attach (const char *dir)
{
    double start = now ();
    struct sweep *s = made_open (dir);
    double opened = now ();
    double *x = s ? calloc (s->exp->space->nparams + 1, sizeof (*x)) : NULL;
    struct search_op op;

    if (!x)
        return 1;
    searcher_ask (s->searcher, &op, x);
    printf ("%ld trials, searcher %s: opened in %.1f ms, first decision %.1f ms\n", s->ntrials,
            s->exp->search->searcher, 1e3 * (opened - start), 1e3 * (now () - opened));
    free (x);
    sweep_close (s);
    return 0;
}

int main (int argc, char **argv)
{
    char dir[PATH_MAX];
    struct sweep *s;

    if (argc == 2)
        return attach (argv[1]);
    if (argc < 4 || made_folder (argv[1], argv[2], dir, sizeof (dir)) < 0 || !(s = made_open (dir)))
        return 1;
    if (fill (s, atol (argv[3])) != 0)
        return 1;
    if (argc == 5) {
        puts (s->dir);
        return fill_attempts (s, argv[4]) < 0;
    }
    sweep_close (s);
    for (int i = 0; i < 5; i++)
        if (fork () == 0) {
            execl ("/proc/self/exe", argv[0], dir, NULL);
            _exit (127);
        } else
            wait (NULL);
    return 0;
}
