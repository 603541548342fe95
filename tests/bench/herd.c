/* SPDX-License-Identifier: Apache-2.0 */
/* Simulate thousands of workers of one experiment in one process: they use the real log, claims and
 * pull loop, each on its own stack, but the clock is simulated.
 *
 *     herd FOLDER WORKERS TRIALS SECONDS [MS [START]]
 *
 * A training takes SECONDS (plus or minus a fifth).  Each call to the file server takes MS
 * (default: 1), so that other workers can act between a worker's check and its claim.  The workers
 * start within START (default: 10) seconds.  Nothing else takes time.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/worker/worker.h"
#include "launcher/worker/worker_private.h"
#include "runtime/base/clock.h"
#include "tests/bench/bench.h"
#include "tests/launcher/made.h"

enum { STACK = 1 << 20 };

struct one {
    struct sweep *sweep;
    ucontext_t context;
    char slot[32];
    enum worker_end end;
    double begun; /* start of its first trial; 0: none */
    long trials;
};

static struct herd {
    struct one *all;
    double *wake; /* when each wakes up; INFINITY: it has ended */
    long n, now;  /* 'now': the worker that runs; -1: none */
    ucontext_t turn;
    double clock, seconds, delay;
    uint64_t random;
    long lists, opens, links, taken;
} herd = { .now = -1 };

static double dice (void)
{
    herd.random = herd.random * 6364136223846793005u + 1442695040888963407u;
    return (double)(herd.random >> 11) * 0x1p-53;
}

/* ---- the clock ---- */

double monotonic (void)
{
    return herd.clock;
}

static void sleep_for (double seconds)
{
    long i = herd.now;

    if (i < 0)
        return;
    herd.wake[i] = herd.clock + seconds;
    swapcontext (&herd.all[i].context, &herd.turn);
}

int poll (struct pollfd *p, nfds_t n, int ms)
{
    for (nfds_t i = 0; i < n; i++)
        p[i].revents = 0;
    sleep_for (ms / 1000.0);
    return 0;
}

/* ---- the file server ---- */

static void *next (const char *name)
{
    return dlsym (RTLD_NEXT, name);
}

DIR *opendir (const char *path)
{
    DIR *(*f) (const char *) = next ("opendir");

    herd.lists++;
    sleep_for (herd.delay);
    return f (path);
}

int open (const char *path, int flags, ...)
{
    int (*f) (const char *, int, ...) = next ("open");
    va_list list;
    mode_t mode;

    va_start (list, flags);
    mode = flags & O_CREAT ? va_arg (list, mode_t) : 0;
    va_end (list);
    herd.opens++;
    sleep_for (herd.delay);
    return f (path, flags, mode);
}

int link (const char *from, const char *to)
{
    int (*f) (const char *, const char *) = next ("link");
    int rv;

    herd.links++;
    sleep_for (herd.delay);
    rv = f (from, to);
    herd.taken += rv < 0;
    return rv;
}

/* ---- the workers ---- */

void segment_end (struct segment_report *r)
{
    (void)r;
}

/* Replaces the training script. */
int segment_run (struct worker *w, long trial, struct segment_report *r, struct slurmdl_error *err)
{
    struct one *one = &herd.all[herd.now];
    double start = herd.clock;
    double end = start + herd.seconds * (0.8 + 0.4 * dice ());
    int rv = 0;

    if (one->trials++ == 0)
        one->begun = start;
    while (rv == 0 && herd.clock < end) {
        sleep_for (end - herd.clock < 1 ? end - herd.clock : 1);
        rv = worker_tick (w, err);
    }
    *r = (struct segment_report){ .outcome = OUTCOME_RESULT,
                                  .length = sweep_trial (w->sweep, trial)->target,
                                  .values = { dice () },
                                  .seconds = herd.clock - start };
    return rv;
}

static void live (int i)
{
    struct worker_place place = { .slot = herd.all[i].slot };
    struct slurmdl_error err = { "" };

    herd.all[i].end = worker_run (herd.all[i].sweep, &place, &err);
    if (*err.text)
        fprintf (stderr, "%s: %s\n", place.slot, err.text);
    herd.wake[i] = INFINITY;
}

static int create (const char *root, long trials, char *dir, size_t size)
{
    char conf[PATH_MAX];
    FILE *f;

    snprintf (conf, sizeof (conf), "%s/herd.conf", root);
    if (!(f = fopen (conf, "w")))
        return -1;
    fprintf (f,
             "name = \"herd\"; entrypoint = \"true\";\n"
             "searcher = { name = \"random\"; metric = \"loss\"; "
             "max_trials = %ld; max_concurrent_trials = %ld; };\n"
             "hyperparameters = { x = { type = \"float\"; minval = 0; "
             "maxval = 1; }; };\n"
             "resources = { workers = %ld; };\n",
             trials, herd.n, herd.n);
    fclose (f);
    return made_folder (conf, root, dir, size);
}

static int make (struct one *one, int i, const char *dir)
{
    snprintf (one->slot, sizeof (one->slot), "1_%d", i);
    if (!(one->sweep = made_open (dir)) || getcontext (&one->context) < 0
        || !(one->context.uc_stack.ss_sp = malloc (STACK)))
        return -1;
    one->context.uc_stack.ss_size = STACK;
    one->context.uc_link = &herd.turn;
    makecontext (&one->context, (void (*) (void))live, 1, i);
    return 0;
}

/* Run the worker that wakes first, until all have ended. */
static void turn (void)
{
    for (;;) {
        long first = 0;
        for (long i = 1; i < herd.n; i++)
            if (herd.wake[i] < herd.wake[first])
                first = i;
        if (isinf (herd.wake[first]))
            return;
        herd.clock = herd.wake[first];
        herd.now = first;
        swapcontext (&herd.turn, &herd.all[first].context);
        herd.now = -1;
    }
}

static void say (const char *dir, long trials)
{
    struct sweep *s = made_open (dir);
    long least = LONG_MAX, most = 0, none = 0, failed = 0;

    for (long i = 0; i < herd.n; i++) {
        const struct one *one = &herd.all[i];
        least = one->trials < least ? one->trials : least;
        most = one->trials > most ? one->trials : most;
        none += one->trials == 0;
        failed += one->end == WORKER_ERROR;
        herd.wake[i] = one->begun;
    }
    qsort (herd.wake, (size_t)herd.n, sizeof (*herd.wake), ascending);
    printf ("results %ld of %ld, entries %ld, workers that failed %ld\n"
            "trials a worker: least %ld, most %ld, without one %ld\n"
            "first trial begun: median %.1f s, last %.1f s\n"
            "ended after %.1f s (%.1f s at best)\n"
            "a trial: folders listed %.1f, files opened %.1f, links %.2f, of "
            "them too late %.2f\n",
            s->nresults, trials, log_length (s->log), failed, least, most, none,
            herd.wake[herd.n / 2], herd.wake[herd.n - 1], herd.clock,
            herd.seconds * (double)trials / (double)herd.n, (double)herd.lists / (double)trials,
            (double)herd.opens / (double)trials, (double)herd.links / (double)trials,
            (double)herd.taken / (double)trials);
    sweep_close (s);
}

int main (int argc, char **argv)
{
    struct rlimit files;
    char dir[PATH_MAX];
    long trials;

    if (argc < 5)
        return 2;
    getrlimit (RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit (RLIMIT_NOFILE, &files);
    herd.n = atol (argv[2]);
    trials = atol (argv[3]);
    herd.seconds = atof (argv[4]);
    herd.delay = (argc > 5 ? atof (argv[5]) : 1) / 1000;
    herd.all = calloc ((size_t)herd.n, sizeof (*herd.all));
    herd.wake = calloc ((size_t)herd.n, sizeof (*herd.wake));
    if (!herd.all || !herd.wake || create (argv[1], trials, dir, sizeof (dir)) < 0)
        return 1;
    for (int i = 0; i < herd.n; i++) {
        herd.wake[i] = dice () * (argc > 6 ? atof (argv[6]) : 10);
        if (make (&herd.all[i], i, dir) < 0)
            return 1;
    }
    herd.opens = herd.lists = 0;
    turn ();
    say (dir, trials);
    return 0;
}
