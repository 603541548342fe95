/* SPDX-License-Identifier: Apache-2.0 */
/* Find the processes of each rank of a job step on this node. */
#include "launcher/sys/step_processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/proc.h"
#include "runtime/base/array.h"
#include "runtime/base/error.h"

enum { ENVIRON_MAX = 4 << 20, DEPTH_MAX = 64 };

enum process_role { UNKNOWN, FOREIGN, HELPER, MEMBER, ROOT };

struct process_entry {
    struct rank_process p;
    enum process_role role;
};

struct process_table {
    struct process_entry *entries; /* sorted by pid */
    size_t n, capacity;
};

struct ranks {
    int proc;
    char job[32], step[32];
    char node[256], cluster[256]; /* "": unknown */
    char program[PATH_MAX];       /* our own executable */
    uid_t user;
    struct process_table now;
    struct rank_process *all; /* sorted by rank, then pid */
    size_t nall;
    struct rank_process *roots;
    size_t nroots;
    char *environment;
    size_t environ_size;
};

/* ---- one process ---- */

static int read_stat (const struct ranks *r, pid_t pid, struct rank_process *p)
{
    struct proc_stat s;
    char path[64];

    snprintf (path, sizeof (path), "%d/stat", (int)pid);
    if (proc_stat (r->proc, path, &s) < 0)
        return -1;
    *p = (struct rank_process){
        .rank = -1,
        .local_rank = -1,
        .pid = pid,
        .parent = s.parent,
        .start = s.start,
        .state = s.state,
        .threads = s.threads,
        .user = s.user,
        .system = s.system,
        .user_ended = s.user_ended,
        .system_ended = s.system_ended,
        .resident = s.resident,
    };
    memcpy (p->name, s.name, sizeof (p->name));
    return 0;
}

/* ---- its environment ---- */

/* Read the NUL-terminated strings, and add one more NUL at the end. */
static int read_process_environment (struct ranks *r, pid_t pid)
{
    char path[64];
    ssize_t n;

    snprintf (path, sizeof (path), "%d/environ", (int)pid);
    for (;;) {
        if (!r->environment)
            r->environment = xmalloc (r->environ_size + 2);
        n = proc_read (r->proc, path, r->environment, r->environ_size + 1);
        if (n < (ssize_t)r->environ_size || r->environ_size >= ENVIRON_MAX)
            break;
        free (r->environment);
        r->environment = NULL;
        r->environ_size *= 2;
    }
    if (n > 0)
        memset (r->environment + n, 0, 2);
    return n > 0 ? 0 : -1;
}

static const char *process_variable (const struct ranks *r, const char *name)
{
    size_t len = strlen (name);

    for (const char *e = r->environment; *e; e += strlen (e) + 1)
        if (!strncmp (e, name, len) && e[len] == '=')
            return e + len + 1;
    return "";
}

static long number_variable (const struct ranks *r, const char *name)
{
    const char *text = process_variable (r, name);
    char *end;
    long n = strtol (text, &end, 10);

    return end == text || *end ? -1 : n;
}

static bool is_own_process (const struct ranks *r, pid_t pid)
{
    char path[64];
    char program[PATH_MAX];
    ssize_t n;

    snprintf (path, sizeof (path), "%d/exe", (int)pid);
    n = readlinkat (r->proc, path, program, sizeof (program) - 1);
    if (n <= 0)
        return false;
    program[n] = '\0';
    return !strcmp (program, r->program);
}

/* Do not decide about a process without an environment, because it may be about to get one. */
static void judge_process (struct ranks *r, struct process_entry *e)
{
    if (read_process_environment (r, e->p.pid) < 0)
        return;
    e->role = FOREIGN;
    if (strcmp (process_variable (r, "SLURM_JOB_ID"), r->job)
        || strcmp (process_variable (r, "SLURM_STEP_ID"), r->step)
        || (*r->node && strcmp (process_variable (r, "SLURMD_NODENAME"), r->node))
        || (*r->cluster && strcmp (process_variable (r, "SLURM_CLUSTER_NAME"), r->cluster))
        || (e->p.rank = number_variable (r, "SLURM_PROCID")) < 0)
        return;
    e->p.local_rank = number_variable (r, "SLURM_LOCALID");
    if (number_variable (r, "SLURM_TASK_PID") == e->p.pid)
        e->role = ROOT;
    else
        e->role = is_own_process (r, e->p.pid) ? HELPER : MEMBER;
}

/* ---- the table ---- */

static int by_pid (const void *a, const void *b)
{
    pid_t x = ((const struct process_entry *)a)->p.pid;
    pid_t y = ((const struct process_entry *)b)->p.pid;

    return (x > y) - (x < y);
}

static struct process_entry *find_step_process (const struct process_table *t, pid_t pid)
{
    struct process_entry key = { .p.pid = pid };

    return t->n ? bsearch (&key, t->entries, t->n, sizeof (key), by_pid) : NULL;
}

/* exec keeps the pid and the start time, but it nearly always changes the name. */
static void remember (const struct process_table *old, struct process_entry *e)
{
    const struct process_entry *was = find_step_process (old, e->p.pid);

    if (!was || was->p.start != e->p.start
        || (was->role == FOREIGN && strcmp (was->p.name, e->p.name)))
        return;
    e->role = was->role;
    e->p.rank = was->p.rank;
    e->p.local_rank = was->p.local_rank;
}

static void inherit_role (struct ranks *r, struct process_entry *e, int depth)
{
    struct process_entry *parent;

    if (e->role != UNKNOWN || depth > DEPTH_MAX)
        return;
    parent = find_step_process (&r->now, e->p.parent);
    if (parent && parent != e) {
        inherit_role (r, parent, depth + 1);
        if (parent->role >= HELPER) {
            e->role = parent->role == HELPER ? HELPER : MEMBER;
            e->p.rank = parent->p.rank;
            e->p.local_rank = parent->p.local_rank;
            return;
        }
    }
    judge_process (r, e);
}

static void add_step_process (struct process_table *t, const struct process_entry *e)
{
    if (array_reserve (&t->entries, &t->capacity, t->n, 1, sizeof (*t->entries)) < 0)
        out_of_memory ();
    t->entries[t->n++] = *e;
}

static bool is_users (const struct ranks *r, pid_t pid)
{
    char name[32];
    struct stat st;

    snprintf (name, sizeof (name), "%d", (int)pid);
    return fstatat (r->proc, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == r->user;
}

static void read_user_processes (const struct ranks *r, DIR *dir, struct process_table *t)
{
    struct process_entry e;
    pid_t pid;

    while ((pid = proc_next (dir))) {
        e.role = UNKNOWN;
        if (!is_users (r, pid) || read_stat (r, pid, &e.p) < 0 || e.p.state == 'Z'
            || e.p.state == 'X')
            continue;
        remember (&r->now, &e);
        add_step_process (t, &e);
    }
}

/* ---- the lists ---- */

static int by_rank (const void *a, const void *b)
{
    const struct rank_process *x = a;
    const struct rank_process *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static void list_step_ranks (struct ranks *r)
{
    const struct process_table *t = &r->now;
    struct rank_process *all = xcalloc (t->n + 1, sizeof (*all));
    struct rank_process *roots = xcalloc (t->n + 1, sizeof (*roots));
    size_t n = 0, m = 0;

    for (size_t i = 0; i < t->n; i++) {
        if (t->entries[i].role >= MEMBER)
            all[n++] = t->entries[i].p;
        if (t->entries[i].role == ROOT)
            roots[m++] = t->entries[i].p;
    }
    qsort (all, n, sizeof (*all), by_rank);
    qsort (roots, m, sizeof (*roots), by_rank);
    free (r->all);
    free (r->roots);
    r->all = all;
    r->nall = n;
    r->roots = roots;
    r->nroots = m;
}

static DIR *open_proc (const struct ranks *r)
{
    int fd = openat (r->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir (fd);

    if (!dir && fd >= 0)
        close (fd);
    return dir;
}

int ranks_look (struct ranks *r)
{
    struct process_table t = { NULL };
    DIR *dir = open_proc (r);

    if (!dir)
        return -1;
    read_user_processes (r, dir, &t);
    closedir (dir);
    if (t.n > 0)
        qsort (t.entries, t.n, sizeof (*t.entries), by_pid);
    free (r->now.entries);
    r->now = t;
    for (size_t i = 0; i < t.n; i++)
        inherit_role (r, &t.entries[i], 0);
    list_step_ranks (r);
    return (int)r->nroots;
}

void ranks_forget (struct ranks *r)
{
    r->nall = r->nroots = 0;
}

const struct rank_process *ranks_roots (const struct ranks *r, size_t *n)
{
    *n = r->nroots;
    return r->roots;
}

const struct rank_process *ranks_all (const struct ranks *r, size_t *n)
{
    *n = r->nall;
    return r->all;
}

const struct rank_process *ranks_of (const struct ranks *r, long rank, size_t *n)
{
    size_t first = 0;

    *n = 0;
    while (first < r->nall && r->all[first].rank < rank)
        first++;
    while (first + *n < r->nall && r->all[first + *n].rank == rank)
        ++*n;
    return *n ? &r->all[first] : NULL;
}

/* ---- create, destroy ---- */

static void find_program (struct ranks *r)
{
    ssize_t n = readlinkat (r->proc, "self/exe", r->program, sizeof (r->program) - 1);

    r->program[n < 0 ? 0 : n] = '\0';
}

static void copy_variable (char *buf, size_t size, const char *name)
{
    snprintf (buf, size, "%s", getenv (name) ?: "");
}

struct ranks *ranks_create (const char *proc, const char *job, const char *step,
                            struct slurmdl_error *err)
{
    struct ranks *r = xcalloc (1, sizeof (*r));

    snprintf (r->job, sizeof (r->job), "%s", job);
    snprintf (r->step, sizeof (r->step), "%s", step);
    copy_variable (r->node, sizeof (r->node), "SLURMD_NODENAME");
    copy_variable (r->cluster, sizeof (r->cluster), "SLURM_CLUSTER_NAME");
    r->user = getuid ();
    r->environ_size = 64 << 10;
    r->proc = open (proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (r->proc < 0) {
        errorf (err, "%s: %s", proc, strerror (errno));
        free (r);
        return NULL;
    }
    find_program (r);
    return r;
}

void ranks_destroy (struct ranks *r)
{
    if (!r)
        return;
    close (r->proc);
    free (r->now.entries);
    free (r->all);
    free (r->roots);
    free (r->environment);
    free (r);
}
