/* SPDX-License-Identifier: Apache-2.0 */
/* Observe from outside when each rank last made progress. */
#include "launcher/debug/debug.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/proc.h"

enum { TEN = 10 };

/* Counters of a thread. */
struct thread {
    pid_t tid;
    uint64_t start;
    uint64_t faults;
    uint64_t io;  /* bytes and calls */
    uint64_t cpu; /* clock ticks */
};

struct threads {
    struct thread *list; /* in order of tid */
    size_t n, capacity;
};

struct progress_seen {
    long rank;
    double last;
};

struct rank_progress {
    char proc[PATH_MAX];
    struct threads before, now;
    struct progress_seen *ranks;
    size_t nranks;
    double looked;
    long hertz;
};

struct rank_progress *progress_create (const char *proc)
{
    struct rank_progress *p = xcalloc (1, sizeof (*p));

    snprintf (p->proc, sizeof (p->proc), "%s", proc);
    p->hertz = sysconf (_SC_CLK_TCK);
    return p;
}

void progress_destroy (struct rank_progress *p)
{
    if (!p)
        return;
    free (p->before.list);
    free (p->now.list);
    free (p->ranks);
    free (p);
}

static int read_thread_stat (const char *folder, struct thread *t)
{
    char path[PATH_MAX + 64];
    struct proc_stat s;

    snprintf (path, sizeof (path), "%s/stat", folder);
    if (proc_stat (AT_FDCWD, path, &s) < 0)
        return -1;
    t->faults = s.minor_faults + s.major_faults;
    t->cpu = s.user + s.system;
    t->start = s.start;
    return 0;
}

/* Summing is enough to notice a change because no counter ever falls. */
static void read_io (const char *folder, struct thread *t)
{
    unsigned long v[4] = { 0 };
    char path[PATH_MAX + 64];
    char text[512];

    snprintf (path, sizeof (path), "%s/io", folder);
    if (proc_read (AT_FDCWD, path, text, sizeof (text)) >= 0)
        sscanf (text, "rchar: %lu wchar: %lu syscr: %lu syscw: %lu", &v[0], &v[1], &v[2], &v[3]);
    t->io = v[0] + v[1] + v[2] + v[3];
}

static struct thread *add_thread (struct threads *t)
{
    if (t->n == t->capacity) {
        t->capacity = 2 * t->capacity + 16;
        t->list = xreallocarray (t->list, t->capacity, sizeof (*t->list));
    }
    memset (&t->list[t->n], 0, sizeof (*t->list));
    return &t->list[t->n++];
}

static int by_tid (const void *a, const void *b)
{
    const struct thread *x = a, *y = b;

    return (x->tid > y->tid) - (x->tid < y->tid);
}

static bool has_moved (const struct rank_progress *p, const struct thread *t, bool is_main,
                       double elapsed)
{
    const struct thread *b = NULL;

    if (p->before.n > 0)
        b = bsearch (t, p->before.list, p->before.n, sizeof (*t), by_tid);
    if (!b || b->start != t->start)
        return is_main; /* a new process counts as progress; a new thread does not */
    if (is_main)
        return b->io != t->io || b->faults != t->faults;
    return b->faults != t->faults && (double)(t->cpu - b->cpu) * TEN > elapsed * (double)p->hertz;
}

static bool observe_process (struct rank_progress *p, pid_t pid, double elapsed)
{
    char path[PATH_MAX + 32];
    bool moved = false;
    struct dirent *e;
    DIR *d;

    snprintf (path, sizeof (path), "%s/%d/task", p->proc, (int)pid);
    if (!(d = opendir (path)))
        return false;
    while ((e = readdir (d))) {
        char folder[PATH_MAX + 320];
        struct thread *t;
        pid_t tid = atoi (e->d_name);
        if (tid <= 0)
            continue;
        snprintf (folder, sizeof (folder), "%s/%s", path, e->d_name);
        t = add_thread (&p->now);
        t->tid = tid;
        if (read_thread_stat (folder, t) < 0) {
            p->now.n--;
            continue;
        }
        if (tid == pid)
            read_io (folder, t);
        moved |= has_moved (p, t, tid == pid, elapsed);
    }
    closedir (d);
    return moved;
}

void progress_mark (struct rank_progress *p, long rank, double now)
{
    for (size_t i = 0; i < p->nranks; i++)
        if (p->ranks[i].rank == rank) {
            p->ranks[i].last = now;
            return;
        }
    XGROW (p->ranks, p->nranks);
    p->ranks[p->nranks++] = (struct progress_seen){ rank, now };
}

double progress_last (const struct rank_progress *p, long rank, double now)
{
    for (size_t i = 0; i < p->nranks; i++)
        if (p->ranks[i].rank == rank)
            return p->ranks[i].last;
    return now;
}

static bool observe_rank (struct rank_progress *p, const struct rank_process *list, size_t n,
                          double elapsed)
{
    enum process_kind *kinds = xcalloc (n, sizeof (*kinds));
    bool moved = false;

    family_kinds (p->proc, list, n, kinds);
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == PROCESS_MAIN || kinds[i] == PROCESS_HELPER)
            moved |= observe_process (p, list[i].pid, elapsed);
    free (kinds);
    return moved;
}

void progress_look (struct rank_progress *p, const struct rank_process *all, size_t n, double now,
                    double asked)
{
    struct threads old = p->before;
    double elapsed = now - p->looked;
    size_t end;

    p->now.n = 0;
    for (size_t i = 0; i < n; i = end) {
        for (end = i; end < n && all[end].rank == all[i].rank; end++)
            ;
        if (observe_rank (p, all + i, end - i, elapsed)
            && progress_last (p, all[i].rank, now) > asked)
            progress_mark (p, all[i].rank, now);
    }
    if (p->now.n > 0)
        qsort (p->now.list, p->now.n, sizeof (*p->now.list), by_tid);
    p->before = p->now;
    p->now = old;
    p->looked = now;
}
