/* SPDX-License-Identifier: Apache-2.0 */
/* dl attend: supervise a task of a step with servers, and end the servers when the
 * chief ends.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/proc.h"
#include "runtime/base/clock.h"

/* TensorFlow's parameter servers, and the workers of a coordinator, never end on their
 * own.  The plugin starts this program around each task of such a step.  When the chief
 * ends, its supervisor makes Slurm send all tasks a signal that programs ignore by
 * default; the other supervisors then end their servers and exit with status 0.
 * SIGTERM would not do, because Slurm takes it as a request to cancel the step and
 * reports it so.
 */
enum { ASK = SIGURG, GRACE_MS = 30000 };

struct attended {
    pid_t pid;
    int signals;
    bool asked;
    int64_t until; /* ms; when to kill it */
};

/* Take only SIGCHLD and ASK.  Slurm sends all other signals to the program as well. */
static int block_signals (void)
{
    sigset_t all, few;

    sigfillset (&all);
    sigprocmask (SIG_BLOCK, &all, NULL);
    sigemptyset (&few);
    sigaddset (&few, SIGCHLD);
    sigaddset (&few, ASK);
    return signalfd (-1, &few, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int64_t now_ms (void)
{
    return (int64_t)(monotonic () * 1000);
}

static int time_left (const struct attended *a)
{
    int64_t left = a->until - now_ms ();

    return !a->asked ? -1 : left > 0 ? (int)left : GRACE_MS;
}

struct attended_process {
    pid_t pid, parent;
};

static struct attended_process *list_processes (size_t *n)
{
    struct attended_process *list = NULL;
    DIR *proc = opendir ("/proc");
    struct proc_stat s;
    char path[32];
    pid_t pid;

    *n = 0;
    while (proc && (pid = proc_next (proc))) {
        snprintf (path, sizeof (path), "%d/stat", (int)pid);
        if (proc_stat (dirfd (proc), path, &s) < 0)
            continue;
        XGROW (list, *n);
        list[(*n)++] = (struct attended_process){ pid, s.parent };
    }
    if (proc)
        closedir (proc);
    return list;
}

static void signal_tree (const struct attended_process *list, size_t n, pid_t pid, int number)
{
    kill (pid, number);
    for (size_t i = 0; i < n; i++)
        if (list[i].parent == pid)
            signal_tree (list, n, list[i].pid, number);
}

/* Signal the whole process tree, each process once: a script may be waiting for a
 * program that it started.
 */
static void signal_all (pid_t root, int number)
{
    size_t n;
    struct attended_process *list = list_processes (&n);

    signal_tree (list, n, root, number);
    free (list);
}

static void end_attended (struct attended *a)
{
    if (a->asked)
        return;
    a->asked = true;
    a->until = now_ms () + GRACE_MS;
    signal_all (a->pid, SIGTERM);
}

static int await_attended_end (struct attended *a, bool serves)
{
    struct pollfd p = { .fd = a->signals, .events = POLLIN };
    struct signalfd_siginfo info;
    pid_t ended;
    int status;

    while ((ended = waitpid (a->pid, &status, WNOHANG)) == 0) {
        if (poll (&p, 1, time_left (a)) == 0)
            signal_all (a->pid, SIGKILL);
        while (read (a->signals, &info, sizeof (info)) == sizeof (info))
            if (info.ssi_signo == ASK && serves)
                end_attended (a);
    }
    return ended < 0 ? W_EXITCODE (EXIT_FAILED, 0) : status;
}

/* End the way the program did, because Slurm distinguishes exit statuses from signals.
 */
static int end_as (int status)
{
    const struct rlimit none = { 0, 0 };
    sigset_t set;

    if (WIFEXITED (status))
        return WEXITSTATUS (status);
    setrlimit (RLIMIT_CORE, &none);
    signal (WTERMSIG (status), SIG_DFL);
    sigfillset (&set);
    raise (WTERMSIG (status));
    sigprocmask (SIG_UNBLOCK, &set, NULL);
    return 128 + WTERMSIG (status);
}

static void ask_all (void)
{
    const char *step = getenv ("SLURM_STEP_ID");
    struct slurmdl_error err = { "" };
    char option[32];

    snprintf (option, sizeof (option), "--signal=%d", ASK);
    if (step && slurm_cancel_step (step, option, &err) < 0)
        complain ("the servers of the step keep running, although the chief has ended: %s",
                  err.text);
}

int cmd_attend (const struct command_line *line)
{
    bool serves = !strcmp (line->args[0], "serves");
    struct attended a = { .pid = (pid_t)strtol (line->args[1], NULL, 10) };
    int status;

    if (a.pid <= 0 || (a.signals = block_signals ()) < 0) {
        complain ("attend: %s", strerror (errno));
        return EXIT_FAILED;
    }
    status = await_attended_end (&a, serves);
    if (!serves)
        ask_all ();
    return a.asked ? EXIT_OK : end_as (status);
}
