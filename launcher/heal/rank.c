/* SPDX-License-Identifier: Apache-2.0 */
/* The rank's side: report to the worker how the rank's program is doing. */
#include "launcher/heal/heal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "launcher/debug/debug.h"
#include "launcher/heal/message.h"
#include "launcher/sys/gpu_readings.h"
#include "launcher/sys/network_readings.h"
#include "launcher/sys/nvml.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/step_processes.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/nearest_word.h"
#include "runtime/comm/net/notice.h"
#include "runtime/comm/net/secret.h"
#include "runtime/comm/net/socket.h"
#include "runtime/comm/net/stream.h"

enum {
    CONNECT_SECONDS = 1, /* to each address of the worker */
    AGAIN_SECONDS = 3,   /* after a failure */
    LOST_SECONDS = 1,    /* after a connection, if it is lost at once */
    HANDSHAKE_SECONDS = 10,
    SEND_SECONDS = 2,
    ALONE_SECONDS = 60,   /* without a connection to the worker until the program is killed */
    FROZEN_SECONDS = 300, /* without a message over a connection; the worker pings often */
    OWN_PAUSE = 5,        /* between two calls of heal_rank_serve() in a rank that ran */
    STACK_SECONDS = 3,
};

/* Seconds that the threads of a training process have spent so far. */
struct thread_times {
    pid_t pid;
    uint64_t start;
    double cpu;       /* running */
    double ready;     /* ready to run, but without a core */
    double throttled; /* kept from running by a limit of a cgroup */
};

enum { MAINS_MOST = 64 };

/* The GPUs that processes of the rank use. */
struct rank_gpus {
    struct gpus *reader; /* NULL: not started */
    uint32_t own;        /* a bit for each index; 0: not known */
    double searched;     /* when all GPUs of the node were last asked for */
    struct gpu_readings readings;
};

/* The network of the host, of which one of its ranks reports. */
struct rank_network {
    bool reports;
    int proc, sys;
    double at; /* when 'was' was read; 0: not yet */
    struct network_readings was, now;
};

enum { NETWORK_SECONDS = 5 };

/* All GPUs of a node are read only to find out which are the rank's: eight ranks on a node would
 * otherwise make 64 readings a second.
 */
static const double search_seconds = 10, search_again = 60;

struct heal_rank {
    struct net_stream stream;
    struct handshake handshake;
    struct heal_hello hello;
    char hosts[NOTICE_TEXT], reached[NOTICE_TEXT]; /* the latter led to the worker */
    int port;
    struct ranks *ranks;
    struct rank_progress *progress;
    struct thread_times times[MAINS_MOST]; /* of its training processes at the last look */
    size_t ntimes;
    double cpu;    /* s of CPU time that its processes had used ... */
    double looked; /* ... at this time */
    double again;  /* when to connect again */
    bool silent;   /* the worker's host did not answer the last time */
    bool refused;  /* it answered that nobody listens */
    bool frozen;   /* the worker has kept its connection, but sent nothing for long */
    double heard;  /* when the worker was last connected; 0: never */
    double told;   /* when its last message came, or the connection began */
    double served; /* when heal_rank_serve() was last called; 0: never */
    double second; /* when to send the next heartbeat */
    struct rank_gpus gpus;
    struct rank_network network;
};

static void read_watch_address (struct heal_rank *r, const char *name)
{
    char text[NOTICE_TEXT], key[SECRET_DIGITS + 1];

    r->handshake = heal_handshake ();
    if (notice_get (name, text, NULL) < 0
        || sscanf (text, "%d %32s %511s", &r->port, key, r->hosts) != 3
        || secret_parse (key, r->handshake.key) < 0)
        r->port = 0;
    handshake_forget (text, sizeof (text));
    handshake_forget (key, sizeof (key));
}

static void introduce_to_worker (struct heal_rank *r)
{
    char host[HEAL_HOST] = "";

    gethostname (host, sizeof (host) - 1);
    r->hello.rank = environment_number ("SLURM_PROCID", 0);
    r->hello.step = environment_number ("SLURM_STEP_ID", -1);
    snprintf (r->hello.host, sizeof (r->hello.host), "%.63s",
              environment_text ("SLURMD_NODENAME", host));
}

static void open_network (struct rank_network *w)
{
    w->proc = w->sys = -1;
    w->reports = environment_number ("SLURM_LOCALID", 0) == 0;
    if (!w->reports)
        return;
    w->proc = open ("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    w->sys = open ("/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

struct heal_rank *heal_rank_create (void)
{
    const char *name = environment_text (HEAL_VARIABLE, NULL);
    struct heal_rank *r = name ? calloc (1, sizeof (*r)) : NULL;

    if (r) {
        net_stream_init (&r->stream, -1, NULL);
        read_watch_address (r, name);
        introduce_to_worker (r);
        open_network (&r->network);
        r->ranks = ranks_create ("/proc", environment_text ("SLURM_JOB_ID", ""),
                                 environment_text ("SLURM_STEP_ID", ""), NULL);
        r->progress = progress_create ("/proc");
    }
    unsetenv (HEAL_VARIABLE);
    if (r && r->port && r->ranks && r->progress)
        return r;
    heal_rank_destroy (r);
    return NULL;
}

void heal_rank_destroy (struct heal_rank *r)
{
    if (!r)
        return;
    net_stream_close (&r->stream);
    handshake_forget (r->handshake.key, sizeof (r->handshake.key));
    ranks_destroy (r->ranks);
    progress_destroy (r->progress);
    gpus_end (r->gpus.reader);
    if (r->network.proc >= 0)
        close (r->network.proc);
    if (r->network.sys >= 0)
        close (r->network.sys);
    free (r);
}

int heal_rank_fd (const struct heal_rank *r)
{
    return r->stream.fd;
}

/* ---- the connection ---- */

/* The worker's host may have addresses that lead nowhere from here, or even to this host, such as
 * that of a bridge for containers.  What counts is the one that led to the worker before; without
 * one, the host has answered only if no address is silent.
 */
static int connect_to_worker (struct heal_rank *r)
{
    char hosts[2 * NOTICE_TEXT], *save = NULL;
    bool known = *r->reached;
    int fd = -1;

    r->silent = r->refused = false;
    snprintf (hosts, sizeof (hosts), "%s%s%s", r->reached, known ? "," : "", r->hosts);
    for (char *host = strtok_r (hosts, ",", &save); host && fd < 0;
         host = strtok_r (NULL, ",", &save)) {
        fd = socket_connect (host, r->port, monotonic () + CONNECT_SECONDS);
        if (fd >= 0)
            snprintf (r->reached, sizeof (r->reached), "%s", host);
        else if (!known || host == hosts) {
            r->silent |= heal_is_silence (errno);
            r->refused |= errno == ECONNREFUSED;
        }
    }
    r->silent &= fd < 0;
    r->refused &= fd < 0 && !r->silent;
    return fd;
}

static void connect_again (struct heal_rank *r)
{
    int limit = HEAL_SILENCE * 1000;
    struct net_seal *seal = NULL;
    int fd;

    if (monotonic () < r->again)
        return;
    fd = connect_to_worker (r);
    if (fd >= 0
        && handshake_call (fd, &r->handshake, &r->hello, sizeof (r->hello),
                           monotonic () + HANDSHAKE_SECONDS, &seal)
               < 0) {
        /* a worker may be busy for a while, but not as long as it takes to call it frozen */
        r->silent = r->frozen && heal_is_silence (errno);
        close (fd);
        fd = -1;
    }
    r->again = monotonic () + (fd < 0 ? AGAIN_SECONDS : LOST_SECONDS);
    if (fd < 0)
        return;
    setsockopt (fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof (limit));
    socket_no_delay (fd);
    net_stream_init (&r->stream, fd, seal);
    r->told = monotonic ();
}

static void send_heal (struct heal_rank *r, enum heal_message kind, const void *body, size_t n)
{
    if (r->stream.fd >= 0
        && net_stream_send (&r->stream, kind, body, n, monotonic () + SEND_SECONDS) < 0)
        net_stream_close (&r->stream);
}

/* ---- messages to the worker ---- */

static double cpu_of (const struct rank_process *p, size_t n)
{
    uint64_t ticks = 0;

    for (size_t i = 0; i < n; i++)
        ticks += p[i].user + p[i].system + p[i].user_ended + p[i].system_ended;
    return (double)ticks / (double)sysconf (_SC_CLK_TCK);
}

/* If there are several processes, as under torchrun, the state that holds up the others counts. */
static char worse_state (char a, char b)
{
    static const char order[] = "TDR";

    for (const char *c = order; *c; c++)
        if (a == *c || b == *c)
            return *c;
    return a ? a : b;
}

/* Whether the main thread is in this system call, by /proc/PID/syscall, and its argument 'n' (from
 * 0).
 */
static bool is_in_call (const char *text, long call, int n, unsigned long long *argument)
{
    char *end;

    if (strtol (text, &end, 10) != call || end == text)
        return false;
    for (int i = 0; i <= n; i++)
        *argument = strtoull (end, &end, 16);
    return *argument != 0;
}

static double read_time (pid_t pid, unsigned long long at)
{
    struct timespec t = { 0 };
    struct iovec here = { &t, sizeof (t) };
    struct iovec there = { (void *)(uintptr_t)at, sizeof (t) };

    if (process_vm_readv (pid, &here, 1, &there, 1, 0) != sizeof (t))
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A process in nanosleep(2) or clock_nanosleep(2) continues on its own.  Returns the seconds until
 * then, at most; 0: it does not sleep.
 */
static double sleep_of (pid_t pid)
{
    char path[64], text[256];
    unsigned long long at, flags = 0;
    struct timespec now;
    double seconds;

    snprintf (path, sizeof (path), "/proc/%d/syscall", (int)pid);
    if (proc_read (AT_FDCWD, path, text, sizeof (text)) < 0)
        return 0;
    if (is_in_call (text, SYS_nanosleep, 0, &at))
        return read_time (pid, at);
    if (!is_in_call (text, SYS_clock_nanosleep, 2, &at))
        return 0;
    seconds = read_time (pid, at);
    if (!is_in_call (text, SYS_clock_nanosleep, 1, &flags))
        return seconds; /* without TIMER_ABSTIME */
    is_in_call (text, SYS_clock_nanosleep, 0, &flags);
    clock_gettime ((clockid_t)flags, &now);
    seconds -= (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    return seconds > 0.001 ? seconds : 0.001;
}

/* ---- how it spends its time ---- */

/* Add up what the kernel's scheduler counted for each thread. */
static void add_thread_times (struct thread_times *t)
{
    char path[64], text[128];
    unsigned long long cpu, ready;
    struct dirent *e;
    DIR *d;

    snprintf (path, sizeof (path), "/proc/%d/task", (int)t->pid);
    if (!(d = opendir (path)))
        return;
    while ((e = readdir (d))) {
        snprintf (path, sizeof (path), "%.20s/schedstat", e->d_name);
        if (*e->d_name == '.' || proc_read (dirfd (d), path, text, sizeof (text)) < 0
            || sscanf (text, "%llu %llu", &cpu, &ready) != 2)
            continue;
        t->cpu += (double)cpu / 1e9;
        t->ready += (double)ready / 1e9;
    }
    closedir (d);
}

/* Add up the throttled time of a cgroup and of those above it, because any of them may have the
 * limit.
 */
static double throttled_in (const char *root, const char *path)
{
    char folder[PATH_MAX], file[PATH_MAX + 16], text[1024];
    double seconds = 0;
    const char *at;
    char *slash;

    snprintf (folder, sizeof (folder), "%.3000s", path);
    for (;;) {
        snprintf (file, sizeof (file), "%s%s/cpu.stat", root, folder);
        if (proc_read (AT_FDCWD, file, text, sizeof (text)) >= 0) {
            if ((at = strstr (text, "throttled_usec ")))
                seconds += strtod (at + strlen ("throttled_usec "), NULL) / 1e6;
            else if ((at = strstr (text, "throttled_time ")))
                seconds += strtod (at + strlen ("throttled_time "), NULL) / 1e9;
        }
        if (!(slash = strrchr (folder, '/')) || (slash == folder && !slash[1]))
            return seconds;
        *slash = '\0';
    }
}

/* /proc/PID/cgroup has "0::/path" for version 2, "4:cpu,cpuacct:/path" for version 1. */
static double throttled_of (pid_t pid)
{
    char path[64], text[8192];
    char *rest = text, *line;
    double seconds = 0;

    snprintf (path, sizeof (path), "/proc/%d/cgroup", (int)pid);
    if (proc_read (AT_FDCWD, path, text, sizeof (text)) < 0)
        return 0;
    while ((line = strsep (&rest, "\n"))) {
        char *controllers = strchr (line, ':');
        char *at = controllers ? strchr (controllers + 1, ':') : NULL;
        if (!at)
            continue;
        *at++ = '\0';
        if (!controllers[1])
            seconds += throttled_in ("/sys/fs/cgroup", at);
        else if (word_listed (controllers + 1, "cpu"))
            seconds += throttled_in ("/sys/fs/cgroup/cpu", at);
    }
    return seconds;
}

static const struct thread_times *times_before (const struct heal_rank *r,
                                                const struct thread_times *now)
{
    for (size_t i = 0; i < r->ntimes; i++)
        if (r->times[i].pid == now->pid && r->times[i].start == now->start)
            return &r->times[i];
    return NULL;
}

static double share_of (double now, double before, double elapsed)
{
    double share = elapsed > 0 ? (now - before) / elapsed : 0;

    return share < 0 ? 0 : share < 1 ? share : 1;
}

/* If a rank has several processes, for example with torchrun, keep the one that waits least. */
static void compare_times (const struct thread_times *was, const struct thread_times *now,
                           double elapsed, struct heal_beat *b)
{
    double wanted = now->cpu - was->cpu + now->ready - was->ready;
    double active = share_of (wanted, 0, elapsed);

    if (active < b->active)
        return;
    b->active = active;
    b->ready = wanted > 0 ? active * share_of (now->ready, was->ready, wanted) : 0;
    b->throttled = share_of (now->throttled, was->throttled, elapsed);
}

static void observe_times (struct heal_rank *r, const struct rank_process *p,
                           const enum process_kind *kinds, size_t n, double elapsed,
                           struct heal_beat *b)
{
    struct thread_times now[MAINS_MOST];
    size_t found = 0;

    for (size_t i = 0; i < n && found < MAINS_MOST; i++)
        if (kinds[i] == PROCESS_MAIN) {
            struct thread_times *t = &now[found++];
            const struct thread_times *was;
            *t = (struct thread_times){ .pid = p[i].pid, .start = p[i].start };
            add_thread_times (t);
            t->throttled = throttled_of (t->pid);
            if ((was = times_before (r, t)))
                compare_times (was, t, elapsed, b);
        }
    memcpy (r->times, now, found * sizeof (*now));
    r->ntimes = found;
}

/* Fill in the state of the processes that train. */
static void observe (struct heal_rank *r, const struct rank_process *p, size_t n, double elapsed,
                     struct heal_beat *b)
{
    enum process_kind *kinds = n ? calloc (n, sizeof (*kinds)) : NULL;

    if (!kinds)
        return;
    family_kinds ("/proc", p, n, kinds);
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == PROCESS_MAIN) {
            double sleeps = p[i].state == 'S' ? sleep_of (p[i].pid) : 0;
            b->state = worse_state ((char)b->state, p[i].state);
            if (sleeps > 0 && (b->sleeps <= 0 || sleeps < b->sleeps))
                b->sleeps = sleeps;
        }
    observe_times (r, p, kinds, n, elapsed, b);
    free (kinds);
}

/* ---- its GPU ---- */

static double or_zero (double v)
{
    return isnan (v) ? 0 : v;
}

static bool has_process (const struct rank_process *p, size_t n, pid_t pid)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].pid == pid)
            return true;
    return false;
}

/* Ranks may share a GPU on purpose, so only programs that are not of this step are others. */
static void find_others (const struct heal_rank *r, int gpu, struct heal_gpu *g)
{
    const struct gpu_readings *readings = &r->gpus.readings;
    double most = 0;
    size_t n;
    const struct rank_process *step = ranks_all (r->ranks, &n);

    for (int i = 0; i < readings->nprocesses; i++) {
        const struct gpu_process *other = &readings->process[i];
        double share = or_zero (other->busy) / 100;
        if (other->gpu != gpu || share <= 0 || has_process (step, n, other->pid))
            continue;
        g->others += share;
        if (share > most) {
            most = share;
            g->other_process = other->pid;
        }
    }
    g->others = g->others < 1 ? g->others : 1;
}

static struct heal_gpu fill_gpu (const struct heal_rank *r, const struct gpu_sample *s)
{
    const double *v = s->v;
    struct heal_gpu g = {
        .known = 1,
        .index = s->index,
        /* if it is not known whether the GPU is idle, its clock means nothing */
        .slowed = isnan (v[GPU_SLOWED]) ? NVML_IDLE : (int64_t)v[GPU_SLOWED],
        .clock = or_zero (v[GPU_CLOCK]),
        .clock_most = isnan (v[GPU_CLOCK]) ? 0 : or_zero (v[GPU_CLOCK_MOST]),
        .power_limit = or_zero (v[GPU_POWER_LIMIT]),
        .lanes = (int64_t)or_zero (v[GPU_LANES]),
        .lanes_most = (int64_t)or_zero (v[GPU_LANES_MOST]),
        .generation = (int64_t)or_zero (v[GPU_GENERATION]),
        .generation_most = (int64_t)or_zero (v[GPU_GENERATION_MOST]),
    };

    find_others (r, s->index, &g);
    return g;
}

/* A rough measure of what is left of its speed, to choose one of several GPUs of a rank. */
static double speed_of (const struct heal_gpu *g)
{
    double speed = 1 - g->others;

    if (g->clock_most > 0 && g->slowed & ~(int64_t)NVML_IDLE)
        speed *= g->clock / g->clock_most;
    if (g->lanes_most > 0)
        speed *= (double)g->lanes / (double)g->lanes_most;
    return speed;
}

static void take_gpu_reading (struct heal_rank *r, const struct rank_process *p, size_t n,
                              struct heal_gpu *slowest)
{
    const struct gpu_readings *readings = &r->gpus.readings;

    r->gpus.own = 0;
    for (int i = 0; i < readings->nprocesses; i++)
        if (has_process (p, n, readings->process[i].pid))
            r->gpus.own |= 1U << readings->process[i].gpu;
    for (int i = 0; i < readings->n; i++) {
        struct heal_gpu g;
        if (!(r->gpus.own >> readings->gpu[i].index & 1))
            continue;
        g = fill_gpu (r, &readings->gpu[i]);
        if (!slowest->known || speed_of (&g) < speed_of (slowest))
            *slowest = g;
    }
}

/* Take the reading that the last heartbeat asked for, and ask for the next one. */
static void observe_gpu (struct heal_rank *r, const struct rank_process *p, size_t n, double now,
                         struct heal_gpu *g)
{
    struct rank_gpus *gpus = &r->gpus;
    double again = gpus->own ? search_again : search_seconds;

    if (r->stream.fd < 0) /* nobody watches */
        return;
    if (!gpus->reader && !(gpus->reader = gpus_start ("/sys", GPUS_SLOWNESS)))
        return;
    if (gpus_take (gpus->reader, &gpus->readings) == GPUS_READ)
        take_gpu_reading (r, p, n, g);
    if (gpus->searched <= 0 || now - gpus->searched >= again) {
        gpus->searched = now;
        gpus_ask (gpus->reader, 0);
    } else if (gpus->own)
        gpus_ask (gpus->reader, gpus->own);
}

/* ---- the network of its host ---- */

/* How much a counter has grown.  A driver that was loaded again has begun anew. */
static double growth (double was, double now)
{
    return now > was ? now - was : 0;
}

static const struct network_link *link_before (const struct network_readings *was,
                                               const struct network_link *now)
{
    for (int i = 0; i < was->n; i++)
        if (!strcmp (was->links[i].name, now->name))
            return &was->links[i];
    return NULL;
}

static void add_link (struct heal_network *report, const struct network_link *was,
                      const struct network_link *now)
{
    struct heal_link *l = &report->links[report->nlinks];
    double sent, received;

    if (!was || report->nlinks == HEAL_LINKS || strlen (now->name) >= sizeof (l->name))
        return;
    sent = growth (was->sent, now->sent);
    received = growth (was->received, now->received);
    if (sent + received <= 0)
        return;
    *l = (struct heal_link){ .speed = or_zero (now->speed),
                             .bytes = sent > received ? sent : received,
                             .packets = growth (was->packets, now->packets) };
    strcpy (l->name, now->name);
    for (int f = 0; f < NETWORK_FAULTS; f++)
        l->faults[f] = growth (was->faults[f], now->faults[f]);
    report->nlinks++;
}

static void compare_network (const struct network_readings *was, const struct network_readings *now,
                             double seconds, struct heal_network *report)
{
    *report = (struct heal_network){ .seconds = seconds,
                                     .segments = growth (was->segments, now->segments),
                                     .resent = growth (was->resent, now->resent),
                                     .received = growth (was->received, now->received),
                                     .gaps = growth (was->gaps, now->gaps) };
    for (int i = 0; i < now->n; i++)
        add_link (report, link_before (was, &now->links[i]), &now->links[i]);
}

static void report_network (struct heal_rank *r, double now)
{
    struct rank_network *w = &r->network;
    struct heal_network report;

    if (!w->reports || r->stream.fd < 0 || (w->at > 0 && now - w->at < NETWORK_SECONDS))
        return;
    network_read (w->proc, w->sys, true, &w->now);
    if (w->at > 0) {
        compare_network (&w->was, &w->now, now - w->at, &report);
        send_heal (r, HEAL_NETWORK, &report, sizeof (report));
    }
    w->was = w->now;
    w->at = now;
}

static void beat (struct heal_rank *r)
{
    double now = monotonic ();
    struct heal_beat b = { 0 };
    const struct rank_process *p;
    double cpu;
    size_t n;

    if (now < r->second)
        return;
    r->second = now + 1;
    ranks_look (r->ranks);
    p = ranks_of (r->ranks, r->hello.rank, &n);
    progress_look (r->progress, p, n, now, 0);
    cpu = cpu_of (p, n);
    b.cores = r->looked > 0 && cpu > r->cpu ? (cpu - r->cpu) / (now - r->looked) : 0;
    observe (r, p, n, now - r->looked, &b);
    observe_gpu (r, p, n, now, &b.gpu);
    b.quiet = now - progress_last (r->progress, r->hello.rank, now);
    r->cpu = cpu;
    r->looked = now;
    send_heal (r, HEAL_BEAT, &b, sizeof (b));
    report_network (r, now);
}

/* ---- messages from the worker ---- */

static void send_dump (struct heal_rank *r, const char *where)
{
    char *folder;
    long number = strtol (where, &folder, 10);
    const struct rank_process *p;
    char path[PATH_MAX], file[64];
    char *text = NULL;
    size_t size = 0, n;
    FILE *f;

    ranks_look (r->ranks);
    p = ranks_of (r->ranks, r->hello.rank, &n);
    if (n > 0 && (f = open_memstream (&text, &size))) {
        dump_rank (f, r->hello.host, p, n, monotonic () + STACK_SECONDS);
        snprintf (file, sizeof (file), "rank-%ld", (long)r->hello.rank);
        debug_path (path, sizeof (path), folder + (*folder == ' '), number, file);
        if (fclose (f) == 0)
            debug_write (path, text);
        free (text);
    }
    send_heal (r, HEAL_DUMPED, NULL, 0);
}

/* Returns false if the worker requests that the program be killed. */
static bool obey (struct heal_rank *r)
{
    bool goes_on = true;
    int rv = 0;

    while (goes_on && r->stream.fd >= 0
           && (rv = net_stream_read (&r->stream, PATH_MAX + 32)) == 1) {
        uint32_t kind = r->stream.head.kind;
        char *body = kind == HEAL_DUMP ? strdup (r->stream.body) : NULL;
        net_stream_next (&r->stream);
        goes_on = kind != HEAL_END;
        r->told = monotonic ();
        if (body)
            send_dump (r, body);
        free (body);
    }
    if (rv < 0)
        net_stream_close (&r->stream);
    return goes_on;
}

/* The kernel of a worker that is stopped, or whose host is, still acknowledges heartbeats.  Whoever
 * stopped this rank, such as scontrol suspend, may have stopped the worker, too.  The first rank of
 * each node, which asks Slurm (launcher/trainer/step.c), acts before the others: as soon as one
 * ends, srun ends all.
 */
static void find_frozen_worker (struct heal_rank *r)
{
    double limit = FROZEN_SECONDS + (r->network.reports ? 0 : ALONE_SECONDS);
    double now = monotonic ();

    if (r->served > 0 && now - r->served > OWN_PAUSE)
        r->told = now;
    r->served = now;
    if (r->stream.fd < 0 || now - r->told < limit)
        return;
    r->frozen = true;
    net_stream_close (&r->stream);
}

bool heal_rank_serve (struct heal_rank *r)
{
    if (!obey (r))
        return false;
    find_frozen_worker (r);
    if (r->frozen)
        return false;
    if (r->stream.fd < 0)
        connect_again (r);
    beat (r);
    if (r->stream.fd >= 0)
        r->heard = monotonic ();
    return r->heard <= 0 || (!r->refused && monotonic () - r->heard < ALONE_SECONDS);
}

bool heal_rank_is_frozen (const struct heal_rank *r)
{
    return r->frozen;
}

bool heal_rank_is_abandoned (struct heal_rank *r)
{
    if (r->stream.fd < 0) {
        r->again = 0;
        connect_again (r);
    }
    return r->stream.fd < 0 && r->silent;
}

void heal_rank_over (struct heal_rank *r, int status)
{
    int64_t over = status;

    if (r->stream.fd < 0) { /* the program ended before the first connection */
        r->again = 0;
        connect_again (r);
    }
    send_heal (r, HEAL_OVER, &over, sizeof (over));
    gpus_end (r->gpus.reader);
    r->gpus.reader = NULL;
}
