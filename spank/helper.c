/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command dl for a task or beside it, and tell helpers when the step ends. */
#include "spank/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

#include "runtime/base/process_id.h"
#include "spank/context.h"

/* Helpers need 2 ms of CPU time.  A busy node takes longer, but still less than the
 * second that proctrack/cgroup waits.
 */
enum { HELPERS = 8, WITHIN_MS = 200, EXIT_MS = 2 };

/* Created in slurmstepd and inherited by tasks. */
static struct ending {
    int own, helper;
    uint32_t tasks; /* helpers still running; 0: no socket pair */
} ending = { -1, -1, 0 };

void ending_open (spank_t sp)
{
    static const int on = 1;
    int pair[2];
    uint32_t tasks = 0;

    if (ending.tasks || spank_get_item (sp, S_JOB_LOCAL_TASK_COUNT, &tasks) != ESPANK_SUCCESS
        || tasks == 0 || socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    setsockopt (pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof (on));
    ending = (struct ending){ pair[0], pair[1], tasks };
}

/* The helpers' end of the socket pair, for a task that starts one; -1 if there is
 * none.
 */
static int ending_of_helper (void)
{
    return ending.helper;
}

/* In a helper, before exec: register it, so that slurmstepd waits for it. */
static void ending_join (void)
{
    if (ending.helper >= 0)
        send (ending.helper, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The next registered process, as the kernel identifies it, or -1 after the last. */
static pid_t next_helper (void)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE (sizeof (struct ucred))];
    } control;
    char byte;
    struct iovec io = { &byte, 1 };
    struct msghdr m = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof (control)
    };
    struct cmsghdr *c;
    struct ucred who = { .pid = -1 };

    if (recvmsg (ending.own, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 && (c = CMSG_FIRSTHDR (&m))
        && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
        memcpy (&who, CMSG_DATA (c), sizeof (who));
    return who.pid;
}

/* Without pidfds (before Linux 5.3), wait until the helpers have closed their end,
 * and a little longer, because a process closes its files before it is gone.
 */
static void await_close (void)
{
    struct pollfd p = { .fd = ending.own, .events = POLLIN };

    if (poll (&p, 1, WITHIN_MS - EXIT_MS) == 1)
        poll (NULL, 0, EXIT_MS);
}

static void await_ends (const int *fds, int n)
{
    struct pollfd p = { .events = POLLIN };

    for (int i = 0; i < n; i++) {
        p.fd = fds[i];
        poll (&p, 1, WITHIN_MS / n);
        close (fds[i]);
    }
}

/* Accept nothing else from a user's process. */
void ending_task (void)
{
    int fds[HELPERS];
    int n = 0, none = 0;
    pid_t pid;

    if (ending.tasks == 0 || --ending.tasks > 0)
        return;
    for (int i = 0; i < HELPERS && (pid = next_helper ()) > 0; i++)
        if ((fds[n] = process_open (pid)) >= 0)
            n++;
        else
            none++;
    close (ending.helper);
    shutdown (ending.own, SHUT_WR);
    if (n > 0)
        await_ends (fds, n);
    else if (none > 0)
        await_close ();
    close (ending.own);
}

/* FDS: without close_range(), close descriptors below this. */
enum { ARGS = 31, NOT_RUN = 127, FDS = 1024, READY_FD = 3, KEPT_FD = 3, LOOK_S = 5 };

/* Slurm calls task_init after it has become the user, with all three user IDs. */
static bool runs_as_user (spank_t sp)
{
    uid_t real, effective, saved;
    uid_t user;

    if (spank_context () == S_CTX_LOCAL)
        return true;
    return spank_get_item (sp, S_JOB_UID, &user) == ESPANK_SUCCESS
           && getresuid (&real, &effective, &saved) == 0 && real == user && effective == user
           && saved == user;
}

static char **environment (spank_t sp)
{
    char **env;

    if (spank_context () == S_CTX_LOCAL || spank_get_item (sp, S_JOB_ENV, &env) != ESPANK_SUCCESS)
        return environ;
    return env;
}

static void plain_signals (void)
{
    sigset_t none;

    sigemptyset (&none);
    for (int s = 1; s < NSIG; s++)
        signal (s, SIG_DFL);
    sigprocmask (SIG_SETMASK, &none, NULL);
}

/* Runs between fork and exec, in a process that may have had threads. */
static void exec_helper (char **argv, char **env)
{
    plain_signals ();
    execve (option_command (), argv, env);
    _exit (NOT_RUN);
}

/* Standard input is 'in', or /dev/null. */
static void become_helper (char **argv, char **env, unsigned seconds, int in)
{
    int null = in < 0 ? open ("/dev/null", O_RDONLY | O_CLOEXEC) : in;

    if (null > 0)
        dup2 (null, 0);
    dup2 (2, 1);
    alarm (seconds);
    exec_helper (argv, env);
}

static int helper_status (pid_t pid)
{
    int status;

    while (waitpid (pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

/* Whether the program exists.  A child process checks: if the file system
 * hangs, the child is left behind.
 */
static int probe_program (void)
{
    static bool hangs; /* a task checks several times in a row */
    struct pollfd p = { .events = POLLIN };
    int life[2];
    int error = ETIMEDOUT;
    pid_t pid;

    errno = ETIMEDOUT;
    if ((hangs && spank_context () != S_CTX_LOCAL) || pipe2 (life, O_CLOEXEC) < 0)
        return -1;
    if ((pid = fork ()) == 0) {
        plain_signals ();
        alarm (LOOK_S);
        _exit (access (option_command (), X_OK) < 0 ? errno : 0);
    }
    if (pid < 0)
        error = errno;
    close (life[1]);
    p.fd = life[0];
    if (pid > 0 && poll (&p, 1, 1000 * (LOOK_S + 1)) == 1 && (error = helper_status (pid)) > 128)
        error = ETIMEDOUT;
    close (life[0]);
    hangs = error == ETIMEDOUT;
    errno = error;
    return error ? -1 : 0;
}

static int prepare_helper (spank_t sp, const char *const *args, char **argv)
{
    size_t n = 0;

    if (!runs_as_user (sp)) {
        errno = EPERM;
        return -1;
    }
    argv[n++] = "dl";
    for (; *args && n < ARGS; args++)
        argv[n++] = (char *)*args;
    argv[n] = NULL;
    return probe_program ();
}

const char *helper_why (int error)
{
    return error == ETIMEDOUT ? "it does not answer: does its file system hang?" : strerror (error);
}

int helper_wait (spank_t sp, const char *const *args, unsigned seconds)
{
    char *argv[ARGS + 1];
    int status;
    pid_t pid;

    if (prepare_helper (sp, args, argv) < 0 || (pid = fork ()) < 0)
        return -1;
    if (pid == 0)
        become_helper (argv, environment (sp), seconds, -1);
    if ((status = helper_status (pid)) != 128 + SIGALRM)
        return status;
    errno = ETIMEDOUT;
    return -1;
}

static void close_from (unsigned first)
{
#ifdef SYS_close_range
    if (syscall (SYS_close_range, first, ~0U, 0) == 0)
        return;
#endif
    for (unsigned fd = first; fd < FDS; fd++)
        close ((int)fd);
}

/* Signals from the terminal are meant for srun. */
pid_t helper_fork (int fds[2])
{
    pid_t pid = fork ();
    int null;

    if (pid != 0)
        return pid;
    setsid ();
    plain_signals ();
    if ((null = open ("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
        _exit (NOT_RUN);
    dup2 (null, 0);
    dup2 (null, 1);
    for (int i = 0; i < 2; i++)
        if ((fds[i] = fcntl (fds[i], F_DUPFD, KEPT_FD + 2)) < 0)
            _exit (NOT_RUN);
    for (int i = 0; i < 2; i++) {
        dup2 (fds[i], KEPT_FD + i);
        fds[i] = KEPT_FD + i;
    }
    close_from (KEPT_FD + 2);
    return 0;
}

/* A helper that is still loading its libraries does not notice the end of the
 * step, but holds the tasks' streams open, for whose end Slurm waits: kill it
 * in that case.
 */
static void guard_helper (pid_t helper, int ready, const char *folder)
{
    struct pollfd p[] = { { .fd = 0, .events = POLLRDHUP }, { .fd = 1, .events = POLLIN } };

    plain_signals ();
    dup2 (ending_of_helper (), 0);
    dup2 (ready, 1);
    close_from (2);
    while (poll (p, 2, -1) < 0 && errno == EINTR)
        ;
    if (p[1].revents == 0) {
        kill (helper, SIGKILL);
        helper_status (helper);
        if (folder)
            rmdir (folder);
    }
    _exit (0);
}

static void become_guarded (char **argv, char **env, const char *folder)
{
    int ready[2];
    pid_t pid;

    ending_join ();
    if (ending_of_helper () < 0)
        become_helper (argv, env, 0, -1);
    if (pipe2 (ready, O_CLOEXEC) < 0 || (pid = fork ()) < 0)
        _exit (NOT_RUN);
    if (pid > 0)
        guard_helper (pid, ready[0], folder);
    ending_join ();
    dup2 (ready[1], READY_FD);
    fcntl (READY_FD, F_SETFD, 0);
    become_helper (argv, env, 0, ending_of_helper ());
}

int helper_detach (spank_t sp, const char *const *args, const char *folder)
{
    char *argv[ARGS + 1];
    pid_t pid;

    if (prepare_helper (sp, args, argv) < 0 || (pid = fork ()) < 0)
        return -1;
    if (pid == 0) {
        setsid ();
        if ((pid = fork ()) == 0)
            become_guarded (argv, environment (sp), folder);
        _exit (pid < 0 ? NOT_RUN : 0);
    }
    return helper_status (pid) == 0 ? 0 : -1;
}

/* Read the first line, or whatever arrives before the timeout. */
static int read_first_line (int fd, unsigned seconds, char *line, size_t size)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    size_t n = 0;
    bool ended = false;

    while (n + 1 < size && !ended && poll (&p, 1, (int)seconds * 1000) == 1) {
        ended = read (fd, line + n, 1) != 1 || line[n] == '\n';
        n += !ended;
    }
    line[n] = '\0';
    if (n > 0)
        return 0;
    errno = ended ? ENODATA : ETIMEDOUT;
    return -1;
}

/* Returns the process group of the program, or -1. */
static pid_t detach_with (char **argv, char **env, int in, int out)
{
    pid_t pid = fork ();

    if (pid == 0) {
        setsid ();
        if ((pid = fork ()) == 0) {
            dup2 (in, 0);
            dup2 (out, 1);
            exec_helper (argv, env);
        }
        _exit (pid < 0 ? NOT_RUN : 0);
    }
    return pid > 0 && helper_status (pid) == 0 ? pid : -1;
}

/* life[1] stays open here and nowhere else.  Kill a helper that does not answer: it
 * holds srun's streams open, and others may wait for their end.
 */
int helper_ask (spank_t sp, const char *const *args, unsigned seconds, char *line, size_t size)
{
    char *argv[ARGS + 1];
    int life[2] = { -1, -1 };
    int answer[2] = { -1, -1 };
    int why;
    int rv = -1;
    pid_t group;

    if (prepare_helper (sp, args, argv) < 0
        || socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, life) < 0
        || pipe2 (answer, O_CLOEXEC) < 0)
        goto out;
    if ((group = detach_with (argv, environment (sp), life[0], answer[1])) < 0)
        goto out;
    close (answer[1]);
    answer[1] = -1;
    if ((rv = read_first_line (answer[0], seconds, line, size)) < 0 && errno == ETIMEDOUT) {
        kill (-group, SIGKILL);
        errno = ETIMEDOUT;
    }
out:
    why = errno;
    close (life[0]);
    close (answer[0]);
    close (answer[1]);
    if (rv < 0)
        close (life[1]);
    errno = why;
    return rv < 0 ? -1 : life[1];
}

int helper_attend (spank_t sp, const char *word)
{
    char number[24];
    const char *const args[] = { "attend", word, number, NULL };
    char *argv[ARGS + 1];
    pid_t me = getpid ();
    pid_t pid;

    if (prepare_helper (sp, args, argv) < 0 || (pid = fork ()) < 0)
        return -1;
    if (pid > 0) {
        snprintf (number, sizeof (number), "%ld", (long)pid);
        exec_helper (argv, environment (sp));
    }
    /* Slurm kills only the other process */
    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (getppid () != me)
        _exit (NOT_RUN);
    return 0;
}
