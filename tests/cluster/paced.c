/* SPDX-License-Identifier: Apache-2.0 */
/* A training program that follows a schedule and measures how it spends its time.
 *
 * usage: paced FILE NAME=NUMBER...
 *     start, step, save, restore    seconds that each of these takes
 *     steps                         number of steps
 *     every                         save every N steps (default: never)
 *     plain=1                       do not use libslurmdl: print the metrics, and keep the step
 *                                   in a file
 *     fault=A*100+S, signal=N, rank=R
 *                                   in attempt A, after step S, rank R sends itself the signal;
 *                                   may be repeated
 *     hold=A*100+S                  in attempt A, after step S, wait until stopped
 *
 * FILE gets a line "ATTEMPT CLASS SECONDS" for each period, and FILE.top the highest logged step.
 * Rank 0 trains; the others wait until it ends or their own fault is due.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/slurmdl.h"

enum { FAULTS_MAX = 4, PER_ATTEMPT = 100 };

static struct {
    double start, step, save, restore;
    long steps, every, plain, hold;
    struct {
        long when, signal, rank;
    } faults[FAULTS_MAX];
    int nfaults;
} plan;

static const char *file;
static long attempt, rank;

static double now (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_seconds (double seconds)
{
    struct timespec t = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep (&t, &t) < 0)
        ;
}

/* Emulate a slow disk: the library calls fsync() in each save; delay the first call. */
static double disk;

int fsync (int fd)
{
    wait_seconds (disk);
    disk = 0;
    return (int)syscall (SYS_fsync, fd);
}

static FILE *open_beside (const char *end, const char *mode)
{
    char path[4096];

    snprintf (path, sizeof (path), "%s%s", file, end);
    return fopen (path, mode);
}

static void put_number (const char *end, long n)
{
    FILE *f = open_beside (end, "w");

    if (!f || fprintf (f, "%ld\n", n) < 0 || fclose (f))
        exit (9);
}

static long get_number (const char *end)
{
    FILE *f = open_beside (end, "r");
    long n = 0;

    if (f && fscanf (f, "%ld", &n) != 1)
        n = 0;
    if (f)
        fclose (f);
    return n;
}

/* Log the time since '*from' under a class, and reset '*from'. */
static void note (const char *class, double *from)
{
    FILE *f = open_beside ("", "a");
    double at = now ();

    if (!f || fprintf (f, "%ld %s %.3f\n", attempt, class, at - *from) < 0 || fclose (f))
        exit (9);
    *from = at;
}

static void read_plan (char **args)
{
    for (; *args; args++) {
        char name[16];
        double n;
        if (sscanf (*args, "%15[a-z]=%lf", name, &n) != 2)
            exit (2);
        if (!strcmp (name, "start"))
            plan.start = n;
        else if (!strcmp (name, "step"))
            plan.step = n;
        else if (!strcmp (name, "save"))
            plan.save = n;
        else if (!strcmp (name, "restore"))
            plan.restore = n;
        else if (!strcmp (name, "steps"))
            plan.steps = (long)n;
        else if (!strcmp (name, "every"))
            plan.every = (long)n;
        else if (!strcmp (name, "plain"))
            plan.plain = (long)n;
        else if (!strcmp (name, "hold"))
            plan.hold = (long)n;
        else if (!strcmp (name, "fault") && plan.nfaults < FAULTS_MAX)
            plan.faults[plan.nfaults++].when = (long)n;
        else if (!strcmp (name, "signal") && plan.nfaults > 0)
            plan.faults[plan.nfaults - 1].signal = (long)n;
        else if (!strcmp (name, "rank") && plan.nfaults > 0)
            plan.faults[plan.nfaults - 1].rank = (long)n;
        else
            exit (2);
    }
}

/* After a step, raise this rank's signal if its fault is due. */
static void suffer (long step)
{
    const long when = attempt * PER_ATTEMPT + step;

    for (int i = 0; i < plan.nfaults; i++)
        if (plan.faults[i].when == when && plan.faults[i].rank == rank) {
            wait_seconds (1); /* so that the metric is written first */
            raise ((int)plan.faults[i].signal);
        } else if (plan.faults[i].when == when && rank == 0)
            wait_seconds (1e6); /* as in a collective with the dead rank */
    if (plan.hold == when)
        wait_seconds (1e6);
}

static int other_rank (void)
{
    long step = 0;

    for (;;) {
        long to = get_number (".now"); /* attempt * 100 + step of rank 0 */
        if (to == -attempt)
            return 0;
        if (to / PER_ATTEMPT == attempt && to % PER_ATTEMPT > step)
            suffer (step = to % PER_ATTEMPT);
        wait_seconds (0.05);
    }
}

static long restore (struct slurmdl *run, double *from)
{
    double begin = now ();
    int64_t step = 0;
    char json[80];

    if (!run)
        return get_number (".step");
    if (slurmdl_restore (run, &step, NULL) <= 0)
        return 0;
    wait_seconds (plan.restore); /* as if it loaded weights without the library */
    snprintf (json, sizeof (json), "{\"step\": %lld, \"seconds\": %.3f}", (long long)step,
              now () - begin);
    slurmdl_event (run, "restored", json);
    *from += now () - begin;
    note ("restoring", &begin);
    return (long)step;
}

/* Returns how long the save takes, or 0 if dl cannot measure it. */
static double save (struct slurmdl *run, long step)
{
    double begin = now ();

    if (!run) {
        put_number (".step", step);
        return 0; /* a plain program's save is not visible to dl */
    }
    disk = plan.save;
    if (slurmdl_save (run, step, NULL) < 0)
        exit (9);
    note ("saving", &begin);
    return plan.save;
}

int main (int argc, char **argv)
{
    double from = now (), weights[4] = { 0 };
    uint64_t n = 4;
    struct slurmdl *run = NULL;
    long step, top;
    bool first = true;

    if (argc < 2)
        return 2;
    file = argv[1];
    read_plan (argv + 2);
    attempt = strtol (getenv ("DL_ATTEMPT") ?: "1", NULL, 10);
    rank = strtol (getenv ("SLURM_PROCID") ?: "0", NULL, 10);
    if (rank > 0)
        return other_rank ();
    setenv ("RANK", "0", 1); /* only this rank uses the library */
    setenv ("WORLD_SIZE", "1", 1);
    if (!plan.plain
        && (!(run = slurmdl_open (NULL, NULL))
            || slurmdl_protect (run, "weights", SLURMDL_F64, 1, &n, weights) < 0))
        return 9;
    wait_seconds (plan.start);
    step = restore (run, &from);
    top = get_number (".top");
    while (step < plan.steps) {
        double saving = 0;
        wait_seconds (plan.step);
        step++;
        if (run)
            slurmdl_log (run, "loss", step, 1.0 / (double)step);
        else if (printf ("step=%ld loss=%f\n", step, 1.0 / (double)step) < 0 || fflush (stdout))
            return 9;
        note (first ? "starting" : step > top ? "training" : "repeated", &from);
        first = false;
        top = step > top ? step : top;
        put_number (".top", top);
        put_number (".now", attempt * PER_ATTEMPT + step);
        suffer (step);
        if (plan.every && step % plan.every == 0) {
            double begin = now ();
            saving = save (run, step);
            from += saving > 0 ? now () - begin : 0;
        }
    }
    put_number (".now", -attempt);
    slurmdl_close (run);
    return 0;
}
