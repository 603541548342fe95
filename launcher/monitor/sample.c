/* SPDX-License-Identifier: Apache-2.0 */
/* dl sample, which the plugin starts next to the ranks of a node: record what they use. */
#include "launcher/monitor/monitor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/network_readings.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/step_processes.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/process_id.h"
#include "runtime/host/sysfs.h"
#include "runtime/rank/plugin_options.h"
#include "runtime/storage/inside.h"

/* ---- CPU, memory and files of each rank ---- */

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
    double sum[COUNTERS];    /* over its processes */
    double before[COUNTERS]; /* the sum at the last sample */
    double lost[COUNTERS];   /* counted by processes that ended without being waited for */
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
    double tick, page; /* length of a clock tick in seconds, size of a page in bytes */
    double time;       /* of the last sample; NaN: none yet */
    struct rank_load *ranks;
    size_t nranks;
    struct spent *spent; /* in order of pid */
    size_t nspent;
};

/* ---- one process ---- */

static int by_process_pid (const void *a, const void *b)
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

/* Like CPU times, these counters include children that were waited for. */
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

/* CPU seconds that the process used since the last sample, without its children. */
static double spent_since (const struct load *l, const struct rank_process *p)
{
    struct spent key = { .pid = p->pid };
    uint64_t ticks = p->user + p->system;
    const struct spent *was =
        l->nspent ? bsearch (&key, l->spent, l->nspent, sizeof (key), by_process_pid) : NULL;

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
    for (size_t i = 0; i < l->nranks; i++)
        if (l->ranks[i].rank == rank)
            return &l->ranks[i];
    XGROW (l->ranks, l->nranks);
    l->ranks[l->nranks] = (struct rank_load){ .rank = rank };
    return &l->ranks[l->nranks++];
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

/* A process that ends without being waited for vanishes from all counters.  If a sum
 * falls for that reason, continue from its previous value.
 */
static void put_rank_load (struct rank_load *r, struct series *s)
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

static void remember_processes (struct load *l, const struct rank_process *p, size_t n)
{
    struct spent *list = xcalloc (n + 1, sizeof (*list));

    free (l->spent);
    l->spent = list;
    l->nspent = n;
    for (size_t i = 0; i < l->nspent; i++)
        list[i] = (struct spent){ p[i].pid, p[i].start, p[i].user + p[i].system };
    if (l->nspent > 0)
        qsort (list, l->nspent, sizeof (*list), by_process_pid);
}

/* Add "rank/R/..." for all ranks that the last scan found.  'time' is in seconds of a monotonic
 * clock.
 */
static void load_sample (struct load *l, const struct ranks *ranks, double time, struct series *s)
{
    size_t n, roots;
    const struct rank_process *p = ranks_all (ranks, &n);
    const struct rank_process *root = ranks_roots (ranks, &roots);
    double seconds = time - l->time; /* NaN for the first sample */

    for (size_t i = 0; i < l->nranks; i++) {
        l->ranks[i].alive = false;
        memset (l->ranks[i].sum, 0, sizeof (l->ranks[i].sum));
        memset (l->ranks[i].gauge, 0, sizeof (l->ranks[i].gauge));
    }
    for (size_t i = 0; i < n; i++) {
        struct rank_load *r = find_rank (l, p[i].rank);
        if (!r->alive && !(seconds > 0))
            r->gauge[BUSIEST] = NAN;
        r->alive = true;
        add_process (l, &p[i], seconds, r);
    }
    for (size_t i = 0; i < l->nranks; i++)
        put_rank_load (&l->ranks[i], s);
    for (size_t i = 0; i < roots; i++)
        put_cores (l, &root[i], s);
    remember_processes (l, p, n);
    l->time = time;
}

/* 'proc' is the root of proc.  'cores' is the number of cores per rank; 0: those that its root
 * process may run on.  Returns NULL with errno on failure.
 */
static struct load *load_create (const char *proc, double cores)
{
    struct load *l = xcalloc (1, sizeof (*l));

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

static void load_destroy (struct load *l)
{
    if (!l)
        return;
    close (l->proc);
    free (l->ranks);
    free (l->spent);
    free (l);
}

/* ---- memory, network and pressure of the node ---- */

enum { TEXT = 16384, DEPTH_MAX = 32 };

struct node_usage {
    int proc, sys;
    int cgroup;   /* the job's cgroup that limits memory; -1: none */
    double limit; /* bytes */
    struct network_readings network;
};

/* Return the number after 'key' in a text, or NaN. */
static double number_after_key (const char *text, const char *key)
{
    const char *at = strstr (text, key);

    return at ? strtod (at + strlen (key), NULL) : NAN;
}

/* ---- memory, load ---- */

static void sample_memory (const struct node_usage *n, struct series *s)
{
    char text[TEXT];
    double total, available;

    if (sysfs_file (n->proc, "meminfo", text, sizeof (text)) < 0)
        return;
    total = number_after_key (text, "MemTotal:") * 1024;
    available = number_after_key (text, "MemAvailable:") * 1024;
    series_put (s, SERIES_GAUGE, total, "node/memory_size");
    series_put (s, SERIES_GAUGE, total - available, "node/memory");
}

static void sample_cgroup (const struct node_usage *n, struct series *s)
{
    double used;

    series_put (s, SERIES_GAUGE, n->limit, "node/limit");
    if (n->cgroup < 0)
        return;
    used = proc_number (n->cgroup, "memory.current");
    if (isnan (used))
        used = proc_number (n->cgroup, "memory.usage_in_bytes");
    series_put (s, SERIES_GAUGE, used, "node/job_memory");
}

/* Sample the seconds in which some process waited, in the job's cgroup if it is known, or else on
 * the whole machine.
 */
static void sample_pressure (const struct node_usage *n, struct series *s)
{
    static const char *const kinds[] = { "cpu", "io", "memory" };
    char path[64];
    char text[512];

    for (size_t i = 0; i < sizeof (kinds) / sizeof (*kinds); i++) {
        snprintf (path, sizeof (path), "%s.pressure", kinds[i]);
        if (n->cgroup < 0 || sysfs_file (n->cgroup, path, text, sizeof (text)) < 0) {
            snprintf (path, sizeof (path), "pressure/%s", kinds[i]);
            if (sysfs_file (n->proc, path, text, sizeof (text)) < 0)
                continue;
        }
        series_put (s, SERIES_COUNTER, number_after_key (text, "total=") * 1e-6, "node/pressure_%s",
                    kinds[i]);
    }
}

/* ---- network ---- */

static void sample_network (struct node_usage *n, struct series *s)
{
    network_read (n->proc, n->sys, false, &n->network);
    for (int i = 0; i < n->network.n; i++) {
        const struct network_link *l = &n->network.links[i];
        const char *kind = l->is_port ? "ib" : "net";
        series_put (s, SERIES_COUNTER, l->received, "%s/%s/rx", kind, l->name);
        series_put (s, SERIES_COUNTER, l->sent, "%s/%s/tx", kind, l->name);
        series_put (s, SERIES_GAUGE, l->speed, "%s/%s/speed", kind, l->name);
    }
}

/* ---- the cgroup ---- */

/* Version 1 reports a huge number instead of "no limit". */
static double memory_limit (int dir)
{
    double v = proc_number (dir, "memory.max"); /* "max": NaN */

    if (isnan (v))
        v = proc_number (dir, "memory.limit_in_bytes");
    return v > 0 && v < 1e15 ? v : NAN;
}

/* Find the lowest limit among the ancestors and the cgroup that sets it. */
static void climb (struct node_usage *n, char *path)
{
    for (int i = 0; i < DEPTH_MAX && *path; i++) {
        int dir = openat (n->sys, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        double v = dir < 0 ? NAN : memory_limit (dir);
        char *slash = strrchr (path, '/');
        if (!isnan (v) && !(n->limit <= v)) {
            if (n->cgroup >= 0)
                close (n->cgroup);
            n->limit = v;
            n->cgroup = dir;
        } else if (dir >= 0) {
            close (dir);
        }
        if (!slash || !strcmp (slash + 1, "cgroup"))
            return;
        *slash = '\0';
    }
}

/* A line "0::/path" means cgroup v2, "4:memory:/path" v1. */
static void find_cgroup (struct node_usage *n)
{
    char text[TEXT];
    char path[PATH_MAX];
    char *rest = text;
    char *line;

    if (sysfs_file (n->proc, "self/cgroup", text, sizeof (text)) < 0)
        return;
    while ((line = strsep (&rest, "\n"))) {
        char *controllers = strchr (line, ':');
        char *at = controllers ? strchr (controllers + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = '\0';
        if (!strcmp (controllers, ":"))
            snprintf (path, sizeof (path), "fs/cgroup%s", at);
        else if (!strcmp (controllers, ":memory"))
            snprintf (path, sizeof (path), "fs/cgroup/memory%s", at);
        else
            continue;
        climb (n, path);
    }
}

/* ---- a sample ---- */

/* Add "node/...", "net/INTERFACE/..." and "ib/DEVICE/PORT/...". */
static void node_sample (struct node_usage *n, struct series *s)
{
    sample_memory (n, s);
    sample_cgroup (n, s);
    sample_pressure (n, s);
    series_put (s, SERIES_GAUGE, proc_number (n->proc, "loadavg"), "node/load");
    sample_network (n, s);
}

/* 'proc' and 'sys' are "/proc" and "/sys", except in tests.  Whatever cannot be read is left out.
 */
static struct node_usage *node_create (const char *proc, const char *sys)
{
    struct node_usage *n = xcalloc (1, sizeof (*n));

    n->cgroup = -1;
    n->limit = NAN;
    n->proc = open (proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    n->sys = open (sys, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    find_cgroup (n);
    return n;
}

static void node_destroy (struct node_usage *n)
{
    if (!n)
        return;
    if (n->proc >= 0)
        close (n->proc);
    if (n->sys >= 0)
        close (n->sys);
    if (n->cgroup >= 0)
        close (n->cgroup);
    free (n);
}

/* ---- the command ---- */

enum {
    BEGIN_WITHIN = 60, /* s until the first task starts its program */
    LAST_TASKS = 1,    /* s for the last tasks to start, when others have ended */
    ROWS = 512 << 10,  /* rows of 32 bytes in the file; beyond, join samples */
    SETTLE = 65,       /* s until each node sees what the others wrote: NFS caches for 60 s */
};
static const double first_sample = 0.1, gpu_answer = 1.0;

/* A task, until it ends. */
struct usage_task {
    pid_t pid;
    uint64_t start; /* 0: unknown */
    int fd;         /* -1: this kernel has no pidfd */
};

struct usage_sampler {
    struct sample_options options;
    double interval;
    const char *step;
    char folder[PATH_MAX];
    char host[65];
    struct idle_gpus idle;
    long marked; /* how often this node has reported that all its GPUs are idle; 0: they are not */
    double marked_at;
    long *marks; /* what all nodes had reported at 'marks_at'; NULL: some node is not idle */
    double marks_at;
    double parked; /* when the step's output got the line that the step parks; 0: not yet */
    bool asked;    /* the ranks were asked to end, one sample later: srun may drop output that
                      arrives just before the end */
    struct ranks *ranks;
    struct load *load;
    struct node_usage *node;
    struct gpus *gpus;
    struct series *series;
    struct gpu_readings readings;
    struct usage_task *tasks;
    size_t ntasks;
    long expected; /* number of tasks on this node; 0: unknown */
    long seen;
    double lost;  /* samples that could not be written */
    int step_end; /* becomes readable when the step's tasks have ended; -1: none */
};

static double clock_of (clockid_t which)
{
    struct timespec ts;

    clock_gettime (which, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- the tasks ---- */

static void watch_task (struct usage_sampler *m, pid_t pid, uint64_t start)
{
    for (size_t i = 0; i < m->ntasks; i++)
        if (m->tasks[i].pid == pid) {
            m->tasks[i].start = start;
            return;
        }
    XGROW (m->tasks, m->ntasks);
    m->tasks[m->ntasks++] = (struct usage_task){ pid, start, process_open (pid) };
}

static void find_step_tasks (struct usage_sampler *m)
{
    const struct rank_process *roots;
    size_t n = 0;

    if (ranks_look (m->ranks) < 0)
        return;
    roots = ranks_roots (m->ranks, &n);
    for (size_t i = 0; i < n; i++)
        watch_task (m, roots[i].pid, roots[i].start);
    if ((long)n > m->seen)
        m->seen = (long)n;
}

static bool task_has_ended (const struct usage_task *t)
{
    struct pollfd p = { .fd = t->fd, .events = POLLIN };

    if (t->fd >= 0)
        return poll (&p, 1, 0) == 1;
    return kill (t->pid, 0) < 0 && errno == ESRCH;
}

static void forget_ended (struct usage_sampler *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->ntasks; i++)
        if (!task_has_ended (&m->tasks[i]))
            m->tasks[n++] = m->tasks[i];
        else if (m->tasks[i].fd >= 0)
            close (m->tasks[i].fd);
    m->ntasks = n;
}

/* Wait until 'until', for the child that reads the GPUs (if 'gpus'), or for the end of a task. */
static void wait_for_sample (struct usage_sampler *m, double until, bool gpus)
{
    struct pollfd *p = xcalloc (m->ntasks + 2, sizeof (*p));
    double left = until - monotonic ();
    nfds_t n = 0;

    for (size_t i = 0; i < m->ntasks; i++) {
        if (m->tasks[i].fd < 0 && left > 1)
            left = 1; /* without pidfd, poll for the end of a task */
        p[n++] = (struct pollfd){ m->tasks[i].fd, POLLIN, 0 };
    }
    if (m->step_end >= 0)
        p[n++] = (struct pollfd){ m->step_end, POLLIN, 0 };
    if (gpus)
        p[n++] = (struct pollfd){ gpus_fd (m->gpus), POLLIN, 0 };
    if (left > 0)
        poll (p, n, (int)ceil (left * 1000));
    free (p);
}

/* Whether Slurm has reported the end of all tasks.  It then soon kills this process, too. */
static bool step_has_ended (const struct usage_sampler *m)
{
    struct pollfd p = { .fd = m->step_end, .events = POLLIN };

    return m->step_end >= 0 && poll (&p, 1, 0) == 1;
}

/* Return whether a task may still start its program although others have ended. */
static bool some_come (struct usage_sampler *m)
{
    double until = monotonic () + LAST_TASKS;

    if (m->step_end >= 0) {
        wait_for_sample (m, until, false);
        if (!step_has_ended (m))
            find_step_tasks (m);
        return !step_has_ended (m);
    }
    find_step_tasks (m);
    while (m->ntasks == 0 && m->seen < m->expected && monotonic () < until) {
        usleep (100 * 1000);
        find_step_tasks (m);
    }
    return m->ntasks > 0;
}

/* ---- one sample ---- */

static long rank_of (const struct usage_sampler *m, pid_t pid)
{
    size_t n;
    const struct rank_process *p = ranks_all (m->ranks, &n);

    for (size_t i = 0; i < n; i++)
        if (p[i].pid == pid)
            return p[i].rank;
    return -1;
}

/* ---- idle GPUs ---- */

static long rank_of_process (const void *sampler, pid_t pid)
{
    return rank_of (sampler, pid);
}

/* Write to the standard error of the first task.  Close it at once, because srun waits until no
 * process has it open.
 */
static void tell_step (const struct usage_sampler *m, const char *text)
{
    char line[IDLE_MOST + 8], path[32];
    int n = snprintf (line, sizeof (line), "dl: %.*s\n", IDLE_MOST, text);

    for (size_t i = 0; i < m->ntasks; i++) {
        snprintf (path, sizeof (path), "/proc/%d/fd/2", (int)m->tasks[i].pid);
        int fd = open (path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0)
            continue;
        bool told = write (fd, line, (size_t)n) == n;
        close (fd);
        if (told)
            return;
    }
}

static void idle_path (const struct usage_sampler *m, const char *name, const char *suffix,
                       char path[PATH_MAX])
{
    snprintf (path, PATH_MAX, "%.3900s/%.64s%s", m->folder, name, suffix);
}

/* The file NODE.idle exists while all GPUs of the node are idle.  Its number grows from time to
 * time, so that the others can tell a live monitor from one that was killed.
 */
static void mark_idle (struct usage_sampler *m, bool idle, double now)
{
    char path[PATH_MAX], text[24];

    if (idle == (m->marked > 0) && !(idle && now - m->marked_at >= SETTLE / 2.0))
        return;
    idle_path (m, m->host, ".idle", path);
    snprintf (text, sizeof (text), "%ld\n", idle ? m->marked + 1 : 0);
    if (!idle)
        unlink (path);
    if (!idle || publish_replace (path, text, strlen (text), NULL) == 0)
        m->marked = idle ? m->marked + 1 : 0;
    m->marked_at = now;
}

static int is_idle_mark (const struct dirent *e)
{
    const char *dot = strrchr (e->d_name, '.');

    return *e->d_name != '.' && dot && !strcmp (dot, ".idle");
}

static long count_step_nodes (void)
{
    return (long)environment_number ("SLURM_STEP_NUM_NODES",
                                     environment_number ("SLURM_JOB_NUM_NODES", 1));
}

/* Read the numbers of all nodes, ordered by name; the caller frees them.  NULL: not all GPUs are
 * idle.  A heterogeneous step never parks, because its components have a folder each, and do not
 * see each other's files.
 */
static long *read_marks (const struct usage_sampler *m)
{
    long nodes = count_step_nodes ();
    struct dirent **list;
    long *marks;
    int n;

    if (m->marked == 0 || environment_number ("SLURM_HET_SIZE", 1) > 1)
        return NULL;
    if ((n = scandir (m->folder, &list, is_idle_mark, alphasort)) < 0)
        return NULL;
    marks = xcalloc ((size_t)n + 1, sizeof (*marks));
    for (int i = 0; i < n; i++) {
        char path[PATH_MAX], text[24];
        idle_path (m, list[i]->d_name, "", path);
        if (proc_read (AT_FDCWD, path, text, sizeof (text)) > 0)
            marks[i] = atol (text);
        free (list[i]);
    }
    free (list);
    if (n == nodes)
        return marks;
    free (marks);
    return NULL;
}

/* Whether all nodes have been idle for so long that this node would have seen one withdraw, and
 * each has reported again since.
 */
static bool all_stay_idle (struct usage_sampler *m, double now)
{
    long *marks = read_marks (m);
    bool stay = marks && m->marks && now - m->marks_at >= SETTLE;

    if (!m->marks || !marks) {
        free (m->marks);
        m->marks = marks;
        m->marks_at = now;
        return marks && count_step_nodes () == 1;
    }
    for (long i = 0; i < count_step_nodes (); i++)
        stay = stay && marks[i] > 0 && m->marks[i] > 0 && marks[i] != m->marks[i];
    free (marks);
    return stay;
}

/* Only the first node calls this: it decides for all. */
static void decide_to_park (struct usage_sampler *m, double now)
{
    const char *attempt = getenv ("DL_ATTEMPT_DIR");
    char path[PATH_MAX], text[128];

    if (!all_stay_idle (m, now))
        return;
    snprintf (text, sizeof (text), IDLE_TEXT, m->options.idle);
    idle_path (m, "park", "", path);
    publish_if_absent (path, text, strlen (text), NULL);
    if (attempt && *attempt && snprintf (path, sizeof (path), "%s/" IDLE_NAME, attempt) < PATH_MAX)
        publish_if_absent (path, text, strlen (text), NULL);
}

/* Whether the step consists of workers, each of which ends its trial by itself. */
static bool belongs_to_worker (const struct rank_process *p)
{
    return getenv ("DL_PIN") && !strcmp (p->name, "dl");
}

static void signal_ranks (struct usage_sampler *m, int signal)
{
    const struct rank_process *p;
    size_t n;

    if (ranks_look (m->ranks) < 0)
        return;
    p = ranks_roots (m->ranks, &n);
    if (n > 0 && belongs_to_worker (&p[0])) {
        for (size_t i = 0; i < n && signal == SIGTERM; i++)
            sigqueue (p[i].pid, SIGUSR2, (union sigval){ .sival_int = (int)m->options.idle });
        return;
    }
    p = ranks_all (m->ranks, &n);
    for (size_t i = n; i-- > 0;) {
        kill (p[i].pid, signal);
        kill (p[i].pid, SIGCONT);
    }
}

/* End the step as a preemption does, but give the ranks as long to end as they were idle.  If it is
 * a trial's step, leave that to the worker.
 */
static void park_step (struct usage_sampler *m, double now)
{
    bool is_trial = *environment_text ("DL_ATTEMPT_DIR", "");
    char path[PATH_MAX];

    mark_idle (m, idle_all (&m->idle), now);
    if (m->parked > 0) {
        if (!is_trial && !m->asked)
            signal_ranks (m, SIGTERM);
        else if (!is_trial && m->marked > 0 && now - m->parked >= m->idle.limit)
            signal_ranks (m, SIGKILL);
        m->asked = true;
        return;
    }
    if (environment_number ("SLURM_NODEID", 0) == 0)
        decide_to_park (m, now);
    idle_path (m, "park", "", path);
    if (access (path, F_OK) < 0)
        return;
    m->parked = now;
    if (environment_number ("SLURM_NODEID", 0) == 0)
        tell_step (m, is_trial ? "all GPUs of the step are idle: the attempt parks"
                               : "all GPUs of the step are idle: its ranks get SIGTERM");
}

/* Record multiples of the limit, so that the file does not grow with each sample. */
static void put_idle (struct usage_sampler *m, double now)
{
    for (int i = 0; i < m->idle.n; i++) {
        const struct idle_gpu *g = &m->idle.gpus[i];
        double steps = g->is_long ? floor ((now - g->since) / m->idle.limit) : 0;
        if (!isnan (m->readings.gpu[i].v[GPU_BUSY]))
            series_put (m->series, SERIES_GAUGE, steps * m->idle.limit, "gpu/%d/idle", g->index);
    }
}

static void watch_idle (struct usage_sampler *m)
{
    double now = monotonic ();
    char text[IDLE_MOST];

    if (!m->options.idle)
        return;
    idle_take (&m->idle, &m->readings, now);
    put_idle (m, now);
    if (idle_text (&m->idle, &m->readings, m->host, now, rank_of_process, m, text, sizeof (text)))
        tell_step (m, text);
    if (m->options.parks)
        park_step (m, now);
}

/* Names of what the monitor records. */
static const struct {
    const char *name;
    enum series_kind kind;
} gpu_names[GPU_USAGE_FIELDS] = {
    [GPU_BUSY] = { "busy", SERIES_GAUGE },
    [GPU_MEMORY] = { "memory", SERIES_GAUGE },
    [GPU_MEMORY_SIZE] = { "memory_size", SERIES_GAUGE },
    [GPU_MEMORY_BUSY] = { "memory_busy", SERIES_GAUGE },
    [GPU_POWER] = { "power", SERIES_GAUGE },
    [GPU_ENERGY] = { "energy", SERIES_COUNTER },
    [GPU_TEMPERATURE] = { "temperature", SERIES_GAUGE },
    [GPU_CLOCK] = { "clock", SERIES_GAUGE },
    [GPU_MEMORY_CLOCK] = { "memory_clock", SERIES_GAUGE },
    [GPU_HOT] = { "hot", SERIES_GAUGE },
    [GPU_CAPPED] = { "capped", SERIES_GAUGE },
    [GPU_PCIE_RECEIVE] = { "pcie_rx", SERIES_GAUGE },
    [GPU_PCIE_SEND] = { "pcie_tx", SERIES_GAUGE },
    [GPU_SM] = { "sm", SERIES_GAUGE },
    [GPU_TENSOR] = { "tensor", SERIES_GAUGE },
};

static void put_gpus (struct usage_sampler *m)
{
    const struct gpu_readings *r = &m->readings;

    for (int i = 0; i < r->n; i++)
        for (int f = 0; f < GPU_USAGE_FIELDS; f++)
            series_put (m->series, gpu_names[f].kind, r->gpu[i].v[f], "gpu/%d/%s", r->gpu[i].index,
                        gpu_names[f].name);
    for (int i = 0; i < r->nprocesses; i++) {
        long rank = rank_of (m, r->process[i].pid);
        if (rank >= 0)
            series_put (m->series, SERIES_GAUGE,
                        isnan (r->process[i].memory) ? 0 : r->process[i].memory, "rank/%ld/gpu/%d",
                        rank, r->process[i].gpu);
    }
}

static void take_gpu_readings (struct usage_sampler *m)
{
    double until = monotonic () + gpu_answer;
    enum gpus_answer got;

    while ((got = gpus_take (m->gpus, &m->readings)) == GPUS_PENDING && m->ntasks > 0
           && monotonic () < until && !step_has_ended (m)) {
        wait_for_sample (m, until, true);
        forget_ended (m);
    }
    if (got == GPUS_READ) {
        put_gpus (m);
        watch_idle (m);
    }
}

static void put_own_usage (struct usage_sampler *m)
{
    series_put (m->series, SERIES_COUNTER, clock_of (CLOCK_PROCESS_CPUTIME_ID), "monitor/cpu");
    if (m->lost > 0)
        series_put (m->series, SERIES_COUNTER, m->lost, "monitor/lost");
}

static void take_sample (struct usage_sampler *m)
{
    double now = monotonic ();

    gpus_ask (m->gpus, 0);
    find_step_tasks (m);
    load_sample (m->load, m->ranks, now, m->series);
    node_sample (m->node, m->series);
    take_gpu_readings (m);
    put_own_usage (m);
    if (series_end (m->series, clock_of (CLOCK_REALTIME)) < 0)
        m->lost++;
}

/* ---- from the first task to the last ---- */

static void begin_sampling (struct usage_sampler *m)
{
    double until = monotonic () + BEGIN_WITHIN;
    double pause = 0.05;

    for (find_step_tasks (m); m->seen == 0; find_step_tasks (m)) {
        if (m->ntasks == 0 || monotonic () > until || step_has_ended (m))
            return;
        wait_for_sample (m, monotonic () + pause, false);
        forget_ended (m);
        pause = fmin (2 * pause, 1);
    }
}

/* Take the first samples at shorter intervals so that short steps get some. */
static void follow_tasks (struct usage_sampler *m)
{
    double pause = fmin (first_sample, m->interval);
    double next = monotonic () + pause;

    for (;;) {
        forget_ended (m);
        if (step_has_ended (m) || (m->ntasks == 0 && !some_come (m)))
            return;
        if (monotonic () < next) {
            wait_for_sample (m, next, false);
            continue;
        }
        take_sample (m);
        pause = fmin (2 * pause, m->interval);
        next = fmax (next + pause, monotonic ());
    }
}

/* Write a last sample, in which the ranks have no processes.  Do not scan all processes for it,
 * because Slurm waits for this process.
 */
static void end_sampling (struct usage_sampler *m)
{
    mark_idle (m, false, 0);
    if (step_has_ended (m))
        ranks_forget (m->ranks);
    else
        ranks_look (m->ranks);
    load_sample (m->load, m->ranks, monotonic (), m->series);
    put_own_usage (m);
    series_end (m->series, clock_of (CLOCK_REALTIME));
    series_destroy (m->series);
    gpus_end (m->gpus);
}

/* ---- starting ---- */

static const char *required_variable (const char *name)
{
    return getenv (name) ?: "";
}

/* Ignore signals sent to the step: the monitor ends by itself after the tasks. */
static void ignore_signals (void)
{
    static const int ignored[] = { SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                   SIGPIPE, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU };

    for (size_t i = 0; i < sizeof (ignored) / sizeof (*ignored); i++)
        signal (ignored[i], SIG_IGN);
}

/* srun waits until every process has closed the tasks' standard error. */
static void leave_streams (void)
{
    int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2 (null, fd);
    if (null >= 3)
        close (null);
}

/* Move the plugin's socket from standard input, which leave_streams() replaces. */
static int find_step_end (void)
{
    struct stat st;

    return fstat (0, &st) == 0 && S_ISSOCK (st.st_mode) ? fcntl (0, F_DUPFD_CLOEXEC, 3) : -1;
}

/* Do not run only on the cores to which rank 0 is bound. */
static void leave_cores (void)
{
    cpu_set_t all;

    memset (&all, 0xff, sizeof (all));
    sched_setaffinity (0, sizeof (all), &all);
    if (nice (10) < 0)
        return; /* then compete with the tasks for CPUs */
}

/* Return the number of cores per rank, or 0 if Slurm does not report it. */
static double cores_given (long tasks)
{
    double each = (double)environment_number ("SLURM_CPUS_PER_TASK", 0);
    double all = (double)environment_number ("SLURM_CPUS_ON_NODE", 0);

    if (each > 0)
        return each;
    return tasks > 0 && all > 0 ? fmax (all / (double)tasks, 1) : 0;
}

/* Whatever the umask is, other users must not create files in our folders. */
enum { FOLDER_MODE = 0755 };

/* Create DL_MONITOR_DIR if necessary, but not its parents. */
static int make_parent (const char *dir)
{
    char *parent = dirname (strdupa (dir));

    return mkdir (parent, FOLDER_MODE) < 0 && errno != EEXIST ? -1 : 0;
}

static int open_series (struct usage_sampler *m)
{
    struct metrics_file_about about = {
        .trial = (long)environment_number ("DL_TRIAL", 0),
        .attempt = (long)environment_number ("DL_ATTEMPT", 0),
    };
    struct slurmdl_error err = { "" };
    const char *node = getenv ("SLURMD_NODENAME");
    char host[65] = "node";
    struct own_folder folder;
    char *dir = m->folder;

    if (monitor_folder (dir, sizeof (m->folder), required_variable ("SLURM_JOB_ID"), m->step) < 0
        || make_parent (dir) < 0) {
        complain ("--dl-monitor: %s: %s; nothing is sampled", dir, strerror (errno));
        return -1;
    }
    if (own_folder_open (&folder, dir, FOLDER_MODE, &err) < 0) {
        complain ("--dl-monitor: %s; nothing is sampled", err.text);
        return -1;
    }
    snprintf (about.experiment, sizeof (about.experiment), "%s",
              required_variable ("DL_EXPERIMENT"));
    if (!node)
        gethostname (host, sizeof (host) - 1);
    snprintf (m->host, sizeof (m->host), "%s", node ?: host);
    m->series = series_create (dir, folder.fd, m->host, &about, ROWS, &err);
    own_folder_close (&folder);
    if (!m->series)
        complain ("--dl-monitor: %s; nothing is sampled", err.text);
    return m->series ? 0 : -1;
}

static int start_sampler (struct usage_sampler *m, const char *proc, const char *sys)
{
    struct slurmdl_error err = { "" };
    pid_t task = (pid_t)environment_number ("SLURM_TASK_PID", 0);

    m->expected = words_count (required_variable ("SLURM_GTIDS"));
    m->ranks = ranks_create (proc, required_variable ("SLURM_JOB_ID"), m->step, &err);
    m->load = load_create (proc, cores_given (m->expected));
    m->node = node_create (proc, sys);
    if (!m->ranks || !m->load || !m->node) {
        complain ("--dl-monitor: %s; nothing is sampled", *err.text ? err.text : strerror (errno));
        return -1;
    }
    if (task > 0 && kill (task, 0) == 0)
        watch_task (m, task, 0);
    return open_series (m);
}

static void release_sampler (struct usage_sampler *m)
{
    for (size_t i = 0; i < m->ntasks; i++)
        if (m->tasks[i].fd >= 0)
            close (m->tasks[i].fd);
    free (m->tasks);
    free (m->marks);
    ranks_destroy (m->ranks);
    load_destroy (m->load);
    node_destroy (m->node);
}

int cmd_sample (const struct command_line *line)
{
    const char *proc = line->nargs > 1 ? line->args[1] : "/proc";
    const char *sys = line->nargs > 2 ? line->args[2] : "/sys";
    struct usage_sampler *m = xcalloc (1, sizeof (*m));
    int rv = EXIT_IO;

    m->step = required_variable ("SLURM_STEP_ID");
    if (sample_options_parse (line->args[0], &m->options) < 0 || !*m->step) {
        complain ("sample: only srun --dl-monitor=SECONDS starts this command");
        free (m);
        return EXIT_USAGE;
    }
    m->interval = (double)m->options.seconds;
    m->idle = (struct idle_gpus){ .limit = 60.0 * (double)m->options.idle, .last = NAN };
    ignore_signals ();
    /* closing 3 tells the plugin that this process now notices the end of the step */
    subprocess_close_inherited (-1);
    m->step_end = find_step_end ();
    leave_cores ();
    if (start_sampler (m, proc, sys) == 0) {
        leave_streams ();
        m->gpus = gpus_start (sys, GPUS_USAGE);
        begin_sampling (m);
        follow_tasks (m);
        end_sampling (m);
        rv = EXIT_OK;
    }
    release_sampler (m);
    free (m);
    return rv;
}
