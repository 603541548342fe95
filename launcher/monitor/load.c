/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of each rank use: CPU, memory, files. */
#include "launcher/monitor/load.h"

#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/host/sysfs.h"

enum counter {
    CPU_USER,
    CPU_SYSTEM,
    READ,
    WRITTEN,
    STORAGE_READ,
    STORAGE_WRITTEN,
    SWITCHES,
    COUNTERS
};
static const char *const counter_names[COUNTERS] = {
    [CPU_USER] = "cpu_user", [CPU_SYSTEM] = "cpu_system",     [READ] = "read",
    [WRITTEN] = "write",     [STORAGE_READ] = "storage_read", [STORAGE_WRITTEN] = "storage_write",
    [SWITCHES] = "switches",
};

enum gauge { BUSIEST, PROCESSES, THREADS, MEMORY, BLOCKED, GAUGES };
static const char *const gauge_names[GAUGES] = {
    [BUSIEST] = "busiest", [PROCESSES] = "processes", [THREADS] = "threads",
    [MEMORY] = "memory",   [BLOCKED] = "blocked",
};

struct rank_load {
    long rank;
    bool alive;
    double sum[COUNTERS];    /* of its processes */
    double before[COUNTERS]; /* at the last sample */
    double lost[COUNTERS];   /* of processes that nobody waited for */
    double gauge[GAUGES];
};

/* CPU time of a process at the last sample. */
struct spent {
    pid_t pid;
    uint64_t start, ticks;
};

struct load {
    int proc;
    double cores;
    double tick, page; /* in seconds, in bytes */
    double time;       /* of the last sample; NaN: none */
    struct rank_load *ranks;
    size_t nranks;
    struct spent *spent; /* in order of pid */
    size_t nspent;
};

/* ---- one process ---- */

static int by_pid (const void *a, const void *b)
{
    pid_t x = ((const struct spent *)a)->pid;
    pid_t y = ((const struct spent *)b)->pid;

    return (x > y) - (x < y);
}

static double number_after (const char *text, const char *key)
{
    const char *at = strstr (text, key);

    return at ? strtod (at + strlen (key), NULL) : 0;
}

/* Like CPU times, these have those of children that were waited for. */
static void add_io (const struct load *l, pid_t pid, double *sum)
{
    char path[32];
    char text[512];

    snprintf (path, sizeof (path), "%d/io", (int)pid);
    if (sysfs_file (l->proc, path, text, sizeof (text)) < 0)
        return;
    sum[READ] += number_after (text, "rchar: ");
    sum[WRITTEN] += number_after (text, "wchar: ");
    sum[STORAGE_READ] += number_after (text, "\nread_bytes: ");
    sum[STORAGE_WRITTEN] += number_after (text, "\nwrite_bytes: ");
}

static void add_switches (const struct load *l, pid_t pid, double *sum)
{
    char path[32];
    char text[4096];

    snprintf (path, sizeof (path), "%d/status", (int)pid);
    if (sysfs_file (l->proc, path, text, sizeof (text)) == 0)
        sum[SWITCHES] += number_after (text, "nonvoluntary_ctxt_switches:");
}

/* CPU seconds of its own since the last sample. */
static double spent_since (const struct load *l, const struct rank_process *p)
{
    struct spent key = { .pid = p->pid };
    uint64_t ticks = p->user + p->system;
    const struct spent *was =
        l->nspent ? bsearch (&key, l->spent, l->nspent, sizeof (key), by_pid) : NULL;

    if (was && was->start == p->start && was->ticks <= ticks)
        ticks -= was->ticks;
    return (double)ticks * l->tick;
}

static void add_process (const struct load *l, const struct rank_process *p, double seconds,
                         struct rank_load *r)
{
    r->sum[CPU_USER] += (double)(p->user + p->user_ended) * l->tick;
    r->sum[CPU_SYSTEM] += (double)(p->system + p->system_ended) * l->tick;
    add_io (l, p->pid, r->sum);
    add_switches (l, p->pid, r->sum);
    r->gauge[PROCESSES]++;
    r->gauge[THREADS] += (double)p->threads;
    r->gauge[MEMORY] += (double)p->resident * l->page;
    r->gauge[BLOCKED] += p->state == 'D';
    if (seconds > 0)
        r->gauge[BUSIEST] = fmax (r->gauge[BUSIEST], spent_since (l, p) / seconds);
}

/* ---- ranks ---- */

static struct rank_load *find_rank (struct load *l, long rank)
{
    struct rank_load *more;

    for (size_t i = 0; i < l->nranks; i++)
        if (l->ranks[i].rank == rank)
            return &l->ranks[i];
    more = array_grow (l->ranks, l->nranks, sizeof (*more));
    if (!more)
        return NULL;
    l->ranks = more;
    more[l->nranks] = (struct rank_load){ .rank = rank };
    return &more[l->nranks++];
}

static void put_cores (const struct load *l, const struct rank_process *root, struct series *s)
{
    double cores = l->cores;
    cpu_set_t set;

    if (sched_getaffinity (root->pid, sizeof (set), &set) == 0
        && (cores <= 0 || CPU_COUNT (&set) < cores))
        cores = CPU_COUNT (&set);
    if (cores > 0)
        series_put (s, SERIES_GAUGE, cores, "rank/%ld/cores", root->rank);
}

/* What ended without its parent's wait is in no counter any more: a sum that
 * fell goes on from where it was.
 */
static void put_rank (struct rank_load *r, struct series *s)
{
    for (int i = 0; i < COUNTERS && r->alive; i++) {
        if (r->sum[i] < r->before[i])
            r->lost[i] += r->before[i] - r->sum[i];
        r->before[i] = r->sum[i];
        series_put (s, SERIES_COUNTER, r->sum[i] + r->lost[i], "rank/%ld/%s", r->rank,
                    counter_names[i]);
    }
    for (int i = 0; i < GAUGES; i++)
        series_put (s, SERIES_GAUGE, r->gauge[i], "rank/%ld/%s", r->rank, gauge_names[i]);
}

static void remember (struct load *l, const struct rank_process *p, size_t n)
{
    struct spent *list = calloc (n + 1, sizeof (*list));

    free (l->spent);
    l->spent = list;
    l->nspent = list ? n : 0;
    for (size_t i = 0; i < l->nspent; i++)
        list[i] = (struct spent){ p[i].pid, p[i].start, p[i].user + p[i].system };
    if (l->nspent > 0)
        qsort (list, l->nspent, sizeof (*list), by_pid);
}

void load_sample (struct load *l, const struct ranks *ranks, double time, struct series *s)
{
    size_t n, roots;
    const struct rank_process *p = ranks_all (ranks, &n);
    const struct rank_process *root = ranks_roots (ranks, &roots);
    double seconds = time - l->time; /* NaN at first */

    for (size_t i = 0; i < l->nranks; i++) {
        l->ranks[i].alive = false;
        memset (l->ranks[i].sum, 0, sizeof (l->ranks[i].sum));
        memset (l->ranks[i].gauge, 0, sizeof (l->ranks[i].gauge));
    }
    for (size_t i = 0; i < n; i++) {
        struct rank_load *r = find_rank (l, p[i].rank);
        if (!r)
            continue;
        if (!r->alive && !(seconds > 0))
            r->gauge[BUSIEST] = NAN;
        r->alive = true;
        add_process (l, &p[i], seconds, r);
    }
    for (size_t i = 0; i < l->nranks; i++)
        put_rank (&l->ranks[i], s);
    for (size_t i = 0; i < roots; i++)
        put_cores (l, &root[i], s);
    remember (l, p, n);
    l->time = time;
}

struct load *load_create (const char *proc, double cores)
{
    struct load *l = calloc (1, sizeof (*l));

    if (!l)
        return NULL;
    l->cores = cores;
    l->time = NAN;
    l->tick = 1.0 / (double)sysconf (_SC_CLK_TCK);
    l->page = (double)sysconf (_SC_PAGESIZE);
    l->proc = open (proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (l->proc >= 0)
        return l;
    free (l);
    return NULL;
}

void load_destroy (struct load *l)
{
    if (!l)
        return;
    close (l->proc);
    free (l->ranks);
    free (l->spent);
    free (l);
}
