/* SPDX-License-Identifier: Apache-2.0 */
/* dl sample: sample the resource usage of the tasks of a step on a node. */
#include "launcher/monitor/sample.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/monitor/gpus.h"
#include "launcher/monitor/load.h"
#include "launcher/monitor/monitor.h"
#include "launcher/monitor/node.h"
#include "launcher/sys/say.h"
#include "launcher/sys/step_processes.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/process_id.h"
#include "runtime/storage/own_folder.h"

enum {
    SECONDS_MAX = 3600,
    BEGIN_WITHIN = 60, /* s, until some task has started its program */
    LAST_TASKS = 1,    /* s, for those that have not when others ended */
    ROWS = 512 << 10,  /* of the file, 32 bytes each; then samples are joined */
};
static const double first_sample = 0.1, gpu_answer = 1.0;

/* A task, until it ends. */
struct usage_task {
    pid_t pid;
    uint64_t start; /* 0: not known */
    int fd;         /* -1: this kernel has no pidfd */
};

struct usage_sampler {
    double interval;
    const char *step;
    struct ranks *ranks;
    struct load *load;
    struct node_usage *node;
    struct gpus *gpus;
    struct series *series;
    struct gpu_readings readings;
    struct usage_task *tasks;
    size_t ntasks;
    long expected; /* tasks of this node, 0: not known */
    long seen;
    double lost;  /* samples that were not written */
    int step_end; /* -1, or readable when the step's tasks have ended */
};

static double clock_of (clockid_t which)
{
    struct timespec ts;

    clock_gettime (which, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- the tasks ---- */

static void watch (struct usage_sampler *m, pid_t pid, uint64_t start)
{
    struct usage_task *more;

    for (size_t i = 0; i < m->ntasks; i++)
        if (m->tasks[i].pid == pid) {
            m->tasks[i].start = start;
            return;
        }
    if (!(more = array_grow (m->tasks, m->ntasks, sizeof (*more))))
        return;
    m->tasks = more;
    more[m->ntasks++] = (struct usage_task){ pid, start, process_open (pid) };
}

static void look (struct usage_sampler *m)
{
    const struct rank_process *roots;
    size_t n = 0;

    if (ranks_look (m->ranks) < 0)
        return;
    roots = ranks_roots (m->ranks, &n);
    for (size_t i = 0; i < n; i++)
        watch (m, roots[i].pid, roots[i].start);
    if ((long)n > m->seen)
        m->seen = (long)n;
}

static bool has_ended (const struct usage_task *t)
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
        if (!has_ended (&m->tasks[i]))
            m->tasks[n++] = m->tasks[i];
        else if (m->tasks[i].fd >= 0)
            close (m->tasks[i].fd);
    m->ntasks = n;
}

/* Until 'until', an answer about GPUs (if 'gpus'), or the end of a task. */
static void wait_for (struct usage_sampler *m, double until, bool gpus)
{
    struct pollfd *p = calloc (m->ntasks + 2, sizeof (*p));
    double left = until - monotonic ();
    nfds_t n = 0;

    for (size_t i = 0; p && i < m->ntasks; i++) {
        if (m->tasks[i].fd < 0 && left > 1)
            left = 1; /* has_ended() decides */
        p[n++] = (struct pollfd){ m->tasks[i].fd, POLLIN, 0 };
    }
    if (p && m->step_end >= 0)
        p[n++] = (struct pollfd){ m->step_end, POLLIN, 0 };
    if (p && gpus)
        p[n++] = (struct pollfd){ gpus_fd (m->gpus), POLLIN, 0 };
    if (left > 0)
        poll (p, n, (int)ceil (left * 1000));
    free (p);
}

/* Slurm says that no task is left: it kills what does not end at once. */
static bool step_has_ended (const struct usage_sampler *m)
{
    struct pollfd p = { .fd = m->step_end, .events = POLLIN };

    return m->step_end >= 0 && poll (&p, 1, 0) == 1;
}

/* Whether a task may yet start its program although others have ended. */
static bool some_come (struct usage_sampler *m)
{
    double until = monotonic () + LAST_TASKS;

    if (m->step_end >= 0) {
        wait_for (m, until, false);
        if (!step_has_ended (m))
            look (m);
        return !step_has_ended (m);
    }
    look (m);
    while (m->ntasks == 0 && m->seen < m->expected && monotonic () < until) {
        usleep (100 * 1000);
        look (m);
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

static void put_gpus (struct usage_sampler *m)
{
    const struct gpu_readings *r = &m->readings;

    for (int i = 0; i < r->n; i++)
        for (int f = 0; f < GPU_FIELDS; f++)
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

static void read_gpus (struct usage_sampler *m)
{
    double until = monotonic () + gpu_answer;
    int got;

    while ((got = gpus_take (m->gpus, &m->readings)) == 0 && m->ntasks > 0 && monotonic () < until
           && !step_has_ended (m)) {
        wait_for (m, until, true);
        forget_ended (m);
    }
    if (got == 1)
        put_gpus (m);
}

static void put_self (struct usage_sampler *m)
{
    series_put (m->series, SERIES_COUNTER, clock_of (CLOCK_PROCESS_CPUTIME_ID), "monitor/cpu");
    if (m->lost > 0)
        series_put (m->series, SERIES_COUNTER, m->lost, "monitor/lost");
}

static void sample (struct usage_sampler *m)
{
    double now = monotonic ();

    gpus_ask (m->gpus);
    look (m);
    load_sample (m->load, m->ranks, now, m->series);
    node_sample (m->node, m->series);
    read_gpus (m);
    put_self (m);
    if (series_end (m->series, clock_of (CLOCK_REALTIME)) < 0)
        m->lost++;
}

/* ---- from the first task to the last ---- */

static void begin (struct usage_sampler *m)
{
    double until = monotonic () + BEGIN_WITHIN;
    double pause = 0.05;

    for (look (m); m->seen == 0; look (m)) {
        if (m->ntasks == 0 || monotonic () > until || step_has_ended (m))
            return;
        wait_for (m, monotonic () + pause, false);
        forget_ended (m);
        pause = fmin (2 * pause, 1);
    }
}

/* Short steps want samples, too: the first ones come sooner. */
static void follow_tasks (struct usage_sampler *m)
{
    double pause = fmin (first_sample, m->interval);
    double next = monotonic () + pause;

    for (;;) {
        forget_ended (m);
        if (step_has_ended (m) || (m->ntasks == 0 && !some_come (m)))
            return;
        if (monotonic () < next) {
            wait_for (m, next, false);
            continue;
        }
        sample (m);
        pause = fmin (2 * pause, m->interval);
        next = fmax (next + pause, monotonic ());
    }
}

/* That no process of a rank is left is the last that the file says.  Slurm
 * waits for it: no time to look at all processes of the node.
 */
static void end (struct usage_sampler *m)
{
    if (step_has_ended (m))
        ranks_forget (m->ranks);
    else
        ranks_look (m->ranks);
    load_sample (m->load, m->ranks, monotonic (), m->series);
    put_self (m);
    series_end (m->series, clock_of (CLOCK_REALTIME));
    series_destroy (m->series);
    gpus_end (m->gpus);
}

/* ---- starting ---- */

static const char *variable (const char *name)
{
    return getenv (name) ?: "";
}

/* The tasks' business is not the monitor's: it ends when they have ended. */
static void ignore_signals (void)
{
    static const int ignored[] = { SIGTERM, SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1, SIGUSR2,
                                   SIGPIPE, SIGALRM, SIGTSTP, SIGTTIN, SIGTTOU, SIGXCPU };

    for (size_t i = 0; i < sizeof (ignored) / sizeof (*ignored); i++)
        signal (ignored[i], SIG_IGN);
}

/* srun waits until nobody has the tasks' standard error open any more. */
static void leave_streams (void)
{
    int null = open ("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2 (null, fd);
    if (null >= 3)
        close (null);
}

/* What the task had open is not for this process, either.  Descriptor 3 tells
 * the plugin that the end of the step is seen from now on.
 */
static void close_inherited (void)
{
    DIR *dir = opendir ("/proc/self/fd");
    struct dirent *e;

    while (dir && (e = readdir (dir))) {
        int fd = atoi (e->d_name);
        if (fd > 2 && fd != dirfd (dir))
            close (fd);
    }
    if (dir)
        closedir (dir);
}

/* The plugin's socket, kept where leave_streams() leaves it. */
static int find_step_end (void)
{
    struct stat st;

    return fstat (0, &st) == 0 && S_ISSOCK (st.st_mode) ? fcntl (0, F_DUPFD_CLOEXEC, 3) : -1;
}

/* Not only on the cores that rank 0 was bound to. */
static void leave_cores (void)
{
    cpu_set_t all;

    memset (&all, 0xff, sizeof (all));
    sched_setaffinity (0, sizeof (all), &all);
    if (nice (10) < 0)
        return; /* it then takes its turn like the tasks */
}

/* Cores for each rank; 0: Slurm does not say. */
static double cores_given (long tasks)
{
    double each = (double)environment_number ("SLURM_CPUS_PER_TASK", 0);
    double all = (double)environment_number ("SLURM_CPUS_ON_NODE", 0);

    if (each > 0)
        return each;
    return tasks > 0 && all > 0 ? fmax (all / (double)tasks, 1) : 0;
}

/* Whatever umask(2) says, nobody else plants files in them. */
enum { FOLDER_MODE = 0755 };

/* DL_MONITOR_DIR may be new, but not what is above it. */
static int make_parent (const char *dir)
{
    char *parent = dirname (strdupa (dir));

    return mkdir (parent, FOLDER_MODE) < 0 && errno != EEXIST ? -1 : 0;
}

static int open_file (struct usage_sampler *m)
{
    struct metrics_file_about about = {
        .trial = (long)environment_number ("DL_TRIAL", 0),
        .attempt = (long)environment_number ("DL_ATTEMPT", 0),
    };
    struct slurmdl_error err = { "" };
    const char *node = getenv ("SLURMD_NODENAME");
    char host[65] = "node";
    struct own_folder folder;
    char dir[PATH_MAX];

    if (monitor_folder (dir, sizeof (dir), variable ("SLURM_JOB_ID"), m->step) < 0
        || make_parent (dir) < 0) {
        complain ("--dl-monitor: %s: %s; nothing is sampled", dir, strerror (errno));
        return -1;
    }
    if (own_folder_open (&folder, dir, FOLDER_MODE, &err) < 0) {
        complain ("--dl-monitor: %s; nothing is sampled", err.text);
        return -1;
    }
    snprintf (about.experiment, sizeof (about.experiment), "%s", variable ("DL_EXPERIMENT"));
    if (!node)
        gethostname (host, sizeof (host) - 1);
    m->series = series_create (dir, folder.fd, node ?: host, &about, ROWS, &err);
    own_folder_close (&folder);
    if (!m->series)
        complain ("--dl-monitor: %s; nothing is sampled", err.text);
    return m->series ? 0 : -1;
}

static int start (struct usage_sampler *m, const char *proc, const char *sys)
{
    struct slurmdl_error err = { "" };
    pid_t task = (pid_t)environment_number ("SLURM_TASK_PID", 0);

    m->expected = words_count (variable ("SLURM_GTIDS"));
    m->ranks = ranks_create (proc, variable ("SLURM_JOB_ID"), m->step, &err);
    m->load = load_create (proc, cores_given (m->expected));
    m->node = node_create (proc, sys);
    if (!m->ranks || !m->load || !m->node) {
        complain ("--dl-monitor: %s; nothing is sampled", *err.text ? err.text : strerror (errno));
        return -1;
    }
    if (task > 0 && kill (task, 0) == 0)
        watch (m, task, 0);
    return open_file (m);
}

static void release (struct usage_sampler *m)
{
    for (size_t i = 0; i < m->ntasks; i++)
        if (m->tasks[i].fd >= 0)
            close (m->tasks[i].fd);
    free (m->tasks);
    ranks_destroy (m->ranks);
    load_destroy (m->load);
    node_destroy (m->node);
}

int cmd_sample (const struct command_line *line)
{
    const char *proc = line->nargs > 1 ? line->args[1] : "/proc";
    const char *sys = line->nargs > 2 ? line->args[2] : "/sys";
    struct usage_sampler *m = calloc (1, sizeof (*m));
    int rv = EXIT_IO;

    if (!m)
        return EXIT_IO;
    m->interval = atof (line->args[0]);
    m->step = variable ("SLURM_STEP_ID");
    if (m->interval < 1 || m->interval > SECONDS_MAX || !*m->step) {
        complain ("sample: it is started by srun --dl-monitor=SECONDS");
        free (m);
        return EXIT_USAGE;
    }
    ignore_signals ();
    close_inherited ();
    m->step_end = find_step_end ();
    leave_cores ();
    if (start (m, proc, sys) == 0) {
        leave_streams ();
        m->gpus = gpus_start (sys);
        begin (m);
        follow_tasks (m);
        end (m);
        rv = EXIT_OK;
    }
    release (m);
    free (m);
    return rv;
}
