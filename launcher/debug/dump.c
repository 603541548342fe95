/* SPDX-License-Identifier: Apache-2.0 */
/* Write the stacks of a rank's processes, from outside of them. */
#include "launcher/debug/dump.h"

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

#include "launcher/debug/signal_thread.h"
#include "launcher/sys/proc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"

enum {
    PATH_SIZE = 512,
    SIGNAL_OFFSET = 18, /* of etc/debug/sitecustomize.py */
    PYTHON_WAIT_MS = 1000,
    STEP_MS = 20,
    FRESH_MS = 1,
    LOOKS = 10, /* for a machine on which each takes longer */
    TEXT_MAX = 1 << 20,
    NATIVE_SECONDS = 30,
    THREADS_MAX = 64,
    HELPERS_MAX = 16,
};

/* One line of a file of proc, without its end; "-" if it cannot be read. */
static void read_line (const char *folder, const char *name, char *buf, size_t size)
{
    char path[PATH_SIZE];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    if (proc_read (AT_FDCWD, path, buf, size) <= 0)
        snprintf (buf, size, "-");
    buf[strcspn (buf, "\n")] = '\0';
}

/* ---- Python ---- */

/* The file that its handler writes to; -1 if it has none (any more). */
static int open_target (pid_t pid)
{
    char folder[PATH_SIZE];
    char link[PATH_SIZE];
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

/* Wait until it is there and grows no more. */
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

static char *read_text (int fd, off_t size)
{
    char *text = malloc ((size_t)size + 1);
    ssize_t n = text ? pread (fd, text, (size_t)size, 0) : -1;

    if (n > 0)
        text[n] = '\0';
    if (n <= 0) {
        free (text);
        return NULL;
    }
    return text;
}

/* The thread to signal; 0: none.  What proc said is old once this process has
 * waited for a CPU: the thread may have begun a poll(), which the signal would
 * break off, or the process be another program, which it would end.
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
        text = read_text (fd, size);
    close (fd);
    return text;
}

/* ---- gdb and eu-stack ---- */

/* DEBUGINFOD_URLS would make them load symbols from the network. */
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

/* Copy what it writes until it ends or 'until'; true if there was a frame. */
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
        kill (child, SIGKILL); /* what it has stopped goes on */
        waitpid (child, NULL, 0);
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
    char path[PATH_SIZE];
    struct proc_stat s;
    char wchan[128];
    char syscall[256];

    snprintf (folder, sizeof (folder), "/proc/%d/task/%d", (int)pid, (int)tid);
    read_line (folder, "comm", name, sizeof (name));
    snprintf (path, sizeof (path), "%s/stat", folder);
    if (proc_stat (AT_FDCWD, path, &s) < 0)
        s.state = '?';
    read_line (folder, "wchan", wchan, sizeof (wchan));
    read_line (folder, "syscall", syscall, sizeof (syscall));
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
    enum process_kind *kinds = calloc (n ? n : 1, sizeof (*kinds));
    int helpers = 0;

    if (!kinds || n == 0) {
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
