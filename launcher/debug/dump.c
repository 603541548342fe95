/* SPDX-License-Identifier: Apache-2.0 */
/* Write the stacks of a rank's processes, from outside the processes. */
#include "launcher/debug/debug.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"

/* ---- the thread of a process that a signal disturbs least ---- */

enum { PROC_PATH = 512, SLEEP_LOOKS = 20, SLEEP_MS = 5 };

static unsigned long long status_number (pid_t pid, pid_t tid, const char *name, int base)
{
    char path[PROC_PATH];
    char line[256];
    unsigned long long number = 0;
    FILE *f;

    snprintf (path, sizeof (path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
    if (!(f = fopen (path, "re")))
        return 0;
    while (fgets (line, sizeof (line), f))
        if (!strncmp (line, name, strlen (name))) {
            number = strtoull (line + strlen (name), NULL, base);
            break;
        }
    fclose (f);
    return number;
}

/* Return whether a signal is in a set of the thread's status in proc, such as "SigCgt:"
 * (signals with a handler) or "SigBlk:" (blocked signals).
 */
static bool signal_is_in (pid_t pid, pid_t tid, const char *set, int number)
{
    return status_number (pid, tid, set, 16) >> (number - 1) & 1;
}

/* Return whether the kernel function in which a thread waits has one of these prefixes. */
static bool waits_in (pid_t pid, pid_t tid, const char *const *names, size_t n)
{
    char path[PROC_PATH];
    char wchan[128];

    snprintf (path, sizeof (path), "/proc/%d/task/%d/wchan", (int)pid, (int)tid);
    proc_read (AT_FDCWD, path, wchan, sizeof (wchan));
    for (size_t i = 0; i < n; i++)
        if (!strncmp (wchan, names[i], strlen (names[i])))
            return true;
    return false;
}

/* A signal interrupts these calls even with SA_RESTART.  PyTorch treats that as an error
 * while it waits for the store of rank 0.
 */
static bool would_break (pid_t pid, pid_t tid)
{
    static const char *const calls[] = { "poll_",     "do_poll",           "do_sys_poll",
                                         "do_select", "core_sys_sel",      "ep_poll",
                                         "do_epoll",  "hrtimer_nanosleep", "do_nanosleep" };

    return waits_in (pid, tid, calls, sizeof (calls) / sizeof (*calls));
}

/* The kernel resumes a wait for a lock after a signal. */
static bool waits_for_lock (pid_t pid, pid_t tid)
{
    static const char *const calls[] = { "futex_" };

    return waits_in (pid, tid, calls, 1);
}

/* Counters that show whether a thread has slept or run. */
struct activity {
    unsigned long long sleeps; /* number of voluntary switches */
    unsigned long long ran;    /* ns; 0: unknown */
};

static struct activity activity_of (pid_t pid, pid_t tid)
{
    struct activity a;
    char path[PROC_PATH];
    char text[128];

    a.sleeps = status_number (pid, tid, "voluntary_ctxt_switches:", 10);
    snprintf (path, sizeof (path), "/proc/%d/task/%d/schedstat", (int)pid, (int)tid);
    proc_read (AT_FDCWD, path, text, sizeof (text));
    a.ran = strtoull (text, NULL, 10);
    return a;
}

enum signal_effect {
    SIGNAL_IS_SAFE,    /* the thread is in a call that resumes, or has run without sleeping */
    SIGNAL_INTERRUPTS, /* its system call would fail */
    SIGNAL_UNKNOWN,    /* it was woken and waits for a CPU, so proc does not show its call */
};

/* What a signal would do to the main thread. */
static enum signal_effect effect_on_main_thread (pid_t pid, double *when)
{
    static const char *const none[] = { "0" };
    struct activity last = { 0, 0 }, now;

    for (int i = 0; i < SLEEP_LOOKS; i++, last = now) {
        if (i > 0)
            poll (NULL, 0, SLEEP_MS);
        *when = monotonic ();
        if (would_break (pid, pid))
            return SIGNAL_INTERRUPTS;
        now = activity_of (pid, pid);
        if (!waits_in (pid, pid, none, 1) || now.ran == 0
            || (i > 0 && now.ran > last.ran && now.sleeps == last.sleeps))
            return SIGNAL_IS_SAFE;
    }
    return SIGNAL_UNKNOWN;
}

/* Return the main thread or, if the signal would interrupt its system call, a thread
 * that waits for a lock.  Returns 0 if there is no such thread, or if the main thread
 * waits for a CPU.  Stores the monotonic() time of the check in 'when'.
 */
static pid_t signal_thread (pid_t pid, int number, double *when)
{
    char folder[PROC_PATH];
    pid_t found = 0;
    struct dirent *e;
    enum signal_effect effect;
    DIR *d;

    if ((effect = effect_on_main_thread (pid, when)) != SIGNAL_INTERRUPTS)
        return effect == SIGNAL_IS_SAFE ? pid : 0;
    *when = monotonic ();
    snprintf (folder, sizeof (folder), "/proc/%d/task", (int)pid);
    if (!(d = opendir (folder)))
        return 0;
    while (found == 0 && (e = readdir (d))) {
        pid_t tid = atoi (e->d_name);
        if (tid > 0 && waits_for_lock (pid, tid) && !signal_is_in (pid, tid, "SigBlk:", number))
            found = tid;
    }
    closedir (d);
    return found;
}

/* ---- stacks ---- */

enum {
    SIGNAL_OFFSET = 18, /* as in etc/debug/sitecustomize.py */
    PYTHON_WAIT_MS = 1000,
    STEP_MS = 20,
    FRESH_MS = 1,
    LOOKS = 10, /* tries to get fresh data on a busy machine */
    TEXT_MAX = 1 << 20,
    NATIVE_SECONDS = 30,
    THREADS_MAX = 64,
    HELPERS_MAX = 16,
};

/* Read one line of a file of proc without its newline, or "-" if that fails. */
static void read_proc_line (const char *folder, const char *name, char *buf, size_t size)
{
    char path[PROC_PATH];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    if (proc_read (AT_FDCWD, path, buf, size) <= 0)
        snprintf (buf, size, "-");
    buf[strcspn (buf, "\n")] = '\0';
}

/* ---- Python ---- */

/* Open the file to which the handler writes.  Returns -1 if there is none, or no longer. */
static int open_target (pid_t pid)
{
    char folder[PROC_PATH];
    char link[PROC_PATH];
    struct dirent *e;
    int fd = -1;
    DIR *d;

    snprintf (folder, sizeof (folder), "/proc/%d/fd", (int)pid);
    if (!(d = opendir (folder)))
        return -1;
    while (fd < 0 && (e = readdir (d))) {
        ssize_t n = readlinkat (dirfd (d), e->d_name, link, sizeof (link) - 1);
        if (n <= 0)
            continue;
        link[n] = '\0';
        if (!strncmp (link, "/memfd:dl-debug", 15) || !strncmp (link, "/tmp/dl-debug.", 14))
            fd = openat (dirfd (d), e->d_name, O_RDWR | O_CLOEXEC);
    }
    closedir (d);
    return fd;
}

/* Wait until text has arrived and stops growing. */
static off_t wait_for_text (int fd)
{
    struct stat st = { .st_size = 0 };
    off_t before = -1;

    for (int ms = 0; ms < PYTHON_WAIT_MS; ms += STEP_MS) {
        poll (NULL, 0, STEP_MS);
        if (fstat (fd, &st) < 0)
            return 0;
        if (st.st_size > 0 && st.st_size == before)
            break;
        before = st.st_size;
    }
    return st.st_size < TEXT_MAX ? st.st_size : TEXT_MAX;
}

static char *read_dump_text (int fd, off_t size)
{
    char *text = xmalloc ((size_t)size + 1);
    ssize_t n = pread (fd, text, (size_t)size, 0);

    if (n > 0)
        text[n] = '\0';
    if (n <= 0) {
        free (text);
        return NULL;
    }
    return text;
}

/* Return the thread to signal, or 0.  The data from proc is stale if this process had to
 * wait for a CPU: by then the thread may be in poll(), which the signal would interrupt,
 * or the process may have executed another program, which the signal would kill.
 */
static pid_t choose_thread (pid_t pid, int number, bool may_disturb)
{
    double when;
    pid_t tid = 0;

    for (int i = 0; i < LOOKS; i++) {
        if ((tid = signal_thread (pid, number, &when)) == 0 && may_disturb)
            tid = pid;
        if (tid == 0 || !signal_is_in (pid, pid, "SigCgt:", number))
            return 0;
        if ((monotonic () - when) * 1000 < FRESH_MS)
            break;
    }
    return tid;
}

char *dump_python (pid_t pid, char state, bool may_disturb)
{
    int number = SIGRTMIN + SIGNAL_OFFSET;
    char *text = NULL;
    pid_t tid;
    off_t size;
    int fd;

    if (strchr ("TtDZX", state) || !signal_is_in (pid, pid, "SigCgt:", number)
        || (fd = open_target (pid)) < 0)
        return NULL;
    if (ftruncate (fd, 0) == 0 && (tid = choose_thread (pid, number, may_disturb)) != 0
        && syscall (SYS_tgkill, pid, tid, number) == 0 && (size = wait_for_text (fd)) > 0)
        text = read_dump_text (fd, size);
    close (fd);
    return text;
}

/* ---- gdb and eu-stack ---- */

/* With DEBUGINFOD_URLS, gdb and eu-stack would download symbols. */
static void forbid_downloads (const void *arg)
{
    (void)arg;
    unsetenv ("DEBUGINFOD_URLS");
}

static pid_t start_reader (int fd, pid_t pid, const char *const *tool)
{
    const char *argv[16];
    char number[16];
    int n = 0;

    snprintf (number, sizeof (number), "%d", (int)pid);
    for (; tool[n]; n++)
        argv[n] = strcmp (tool[n], "PID") ? tool[n] : number;
    argv[n] = NULL;
    return subprocess_spawn (&(struct spawn){ .argv = (char *const *)argv,
                                              .io = { -1, fd, -1 },
                                              .death_signal = SIGKILL,
                                              .prepare = forbid_downloads });
}

/* Copy the tool's output until it ends or until the time 'until'.  Returns whether it
 * contained a frame.
 */
static bool copy_output (int fd, FILE *out, double until)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    char buf[4096];
    bool any = false;
    size_t total = 0;

    while (total < TEXT_MAX) {
        double left = until - monotonic ();
        ssize_t n;
        if (left <= 0 || poll (&p, 1, (int)(left * 1000) + 1) <= 0)
            break;
        n = read (fd, buf, sizeof (buf) - 1);
        if (n <= 0)
            break;
        buf[n] = '\0';
        any |= strstr (buf, "#0 ") != NULL;
        total += (size_t)n;
        fwrite (buf, 1, (size_t)n, out);
    }
    return any;
}

static bool run_native (FILE *out, pid_t pid, const char *const *tool, double until)
{
    double end = monotonic () + NATIVE_SECONDS;
    bool any = false;
    pid_t child;
    int fds[2];

    if (pipe2 (fds, O_CLOEXEC) < 0)
        return false;
    child = start_reader (fds[1], pid, tool);
    close (fds[1]);
    if (child > 0) {
        any = copy_output (fds[0], out, end < until ? end : until);
        kill (child, SIGKILL);
        waitpid (child, NULL, 0);
        kill (pid, SIGCONT); /* the killed tool may have stopped the process */
    }
    close (fds[0]);
    return any;
}

static void dump_native (FILE *out, pid_t pid, double until)
{
    static const char *const tools[][10] = {
        { "gdb", "-nx", "-batch", "-p", "PID", "-ex", "thread apply all bt 64" },
        { "eu-stack", "-p", "PID" },
    };

    fputs ("== native\n", out);
    for (size_t i = 0; i < sizeof (tools) / sizeof (*tools); i++)
        if (monotonic () < until && run_native (out, pid, tools[i], until))
            return;
}

/* ---- the kernel ---- */

static void dump_thread (FILE *out, pid_t pid, pid_t tid)
{
    char folder[64];
    char name[32];
    char path[PROC_PATH];
    struct proc_stat s;
    char wchan[128];
    char syscall[256];

    snprintf (folder, sizeof (folder), "/proc/%d/task/%d", (int)pid, (int)tid);
    read_proc_line (folder, "comm", name, sizeof (name));
    snprintf (path, sizeof (path), "%s/stat", folder);
    if (proc_stat (AT_FDCWD, path, &s) < 0)
        s.state = '?';
    read_proc_line (folder, "wchan", wchan, sizeof (wchan));
    read_proc_line (folder, "syscall", syscall, sizeof (syscall));
    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '_';
    syscall[strcspn (syscall, " ")] = '\0';
    fprintf (out, "%d %s %c %s %s\n", (int)tid, *name ? name : "-", s.state, wchan, syscall);
}

static void dump_kernel (FILE *out, pid_t pid)
{
    char path[64];
    struct dirent *e;
    int n = 1;
    DIR *d;

    fputs ("== kernel\n", out);
    dump_thread (out, pid, pid);
    snprintf (path, sizeof (path), "/proc/%d/task", (int)pid);
    if (!(d = opendir (path)))
        return;
    while ((e = readdir (d)) && n < THREADS_MAX)
        if (atoi (e->d_name) > 0 && atoi (e->d_name) != pid) {
            dump_thread (out, pid, atoi (e->d_name));
            n++;
        }
    closedir (d);
}

/* ---- a rank ---- */

static void dump_process (FILE *out, const struct rank_process *p, enum process_kind kind,
                          double until)
{
    char name[PROCESS_NAME];
    char *text;

    memcpy (name, p->name, sizeof (name));
    for (char *c = name; *c; c++)
        if (*c == ' ')
            *c = '_';
    fprintf (out, "== process %d %s %c%s\n", (int)p->pid, name, p->state,
             kind == PROCESS_MAIN ? "" : " helper");
    if ((text = dump_python (p->pid, p->state, true)))
        fprintf (out, "== python\n%s", text);
    else if (kind == PROCESS_MAIN && !strchr ("TtDZX", p->state))
        dump_native (out, p->pid, until);
    dump_kernel (out, p->pid);
    free (text);
}

void dump_rank (FILE *out, const char *host, const struct rank_process *p, size_t n, double until)
{
    enum process_kind *kinds = xcalloc (n, sizeof (*kinds));
    int helpers = 0;

    if (n == 0) {
        free (kinds);
        return;
    }
    fprintf (out, "== rank %ld on %s\n", p->rank, host);
    family_kinds ("/proc", p, n, kinds);
    for (size_t i = 0; i < n; i++)
        if (kinds[i] == PROCESS_MAIN || (kinds[i] == PROCESS_HELPER && helpers++ < HELPERS_MAX))
            dump_process (out, &p[i], kinds[i], until);
    free (kinds);
}
