/* SPDX-License-Identifier: Apache-2.0 */
/* Run other programs, and capture their output. */
#include "launcher/sys/subprocess.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/clock.h"

/* ---- environment variables of the job ---- */

bool variable_is_of_job (const char *variable)
{
    return (!strncmp (variable, "SLURM_", 6) || !strncmp (variable, "_SLURM_", 7))
           && strncmp (variable, "SLURM_CONF=", 11);
}

bool variable_is_of_step (const char *variable)
{
    static const char *const of_job[] = {
        "SLURM_HET_SIZE=",
        "SLURM_JOB_",
        "SLURM_JOBID=",
        "SLURM_ARRAY_",
        "SLURM_CLUSTER_NAME",
        "SLURM_SUBMIT_",
        /* options of our plugin, given to sbatch for all steps */
        "SLURM_SPANK__SLURM_SPANK_OPTION_dl_",
        NULL,
    };

    /* from *_HET_GROUP_N srun learns the resources of each component of the job */
    if (!variable_is_of_job (variable) || strstr (variable, "_HET_GROUP_"))
        return false;
    for (const char *const *name = of_job; *name; name++)
        if (!strncmp (variable, *name, strlen (*name)))
            return false;
    return true;
}

void variables_drop (bool (*is) (const char *variable))
{
    char **to = environ;

    for (char **v = environ; *v; v++)
        if (!is (*v))
            *to++ = *v;
    *to = NULL;
}

void own_program (char path[PATH_MAX])
{
    static const char gone[] = " (deleted)";
    ssize_t n = readlink ("/proc/self/exe", path, PATH_MAX - 1);

    path[n > 0 ? n : 0] = '\0';
    if (n <= 0)
        strcpy (path, "dl");
    /* an upgrade replaced the file, and Linux says so: its successor has the same path */
    if (access (path, F_OK) < 0 && n > (ssize_t)strlen (gone)
        && !strcmp (path + n - strlen (gone), gone))
        path[n - (ssize_t)strlen (gone)] = '\0';
}

static void unblock_signals (void)
{
    sigset_t none;

    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
}

/* Reset the handlers, as exec() does, but before unblocking the signals.  Otherwise our handlers
 * would catch a signal meant for the new program.
 */
static void default_handlers (void)
{
    struct sigaction sa;

    for (int i = 1; i < SIGRTMIN; i++)
        if (sigaction (i, NULL, &sa) == 0 && sa.sa_handler != SIG_IGN && sa.sa_handler != SIG_DFL)
            signal (i, SIG_DFL);
}

static pid_t start_child (int death_signal)
{
    pid_t parent = getpid ();
    pid_t pid;

    fflush (NULL);
    if ((pid = fork ()) != 0)
        return pid;
    if (death_signal) {
        prctl (PR_SET_PDEATHSIG, death_signal);
        if (getppid () != parent) /* the parent ended before prctl() */
            raise (death_signal);
    }
    return 0;
}

pid_t subprocess_fork (int death_signal)
{
    pid_t pid = start_child (death_signal);

    if (pid == 0)
        unblock_signals ();
    return pid;
}

void subprocess_close_inherited (int kept)
{
    DIR *dir = opendir ("/proc/self/fd");
    struct dirent *e;

    while (dir && (e = readdir (dir))) {
        int fd = atoi (e->d_name);
        if (fd > 2 && fd != dirfd (dir) && fd != kept)
            close (fd);
    }
    if (dir)
        closedir (dir);
}

/* Whether a folder of PATH has a file 'name'. */
static bool is_in_path (const char *name)
{
    const char *list = getenv ("PATH");
    char path[PATH_MAX];
    struct stat st;

    for (const char *p = list ? list : "/bin:/usr/bin";; p++) {
        size_t len = strcspn (p, ":");
        if (snprintf (path, sizeof (path), "%.*s%s%s", (int)len, p, len ? "/" : "", name)
                < (int)sizeof (path)
            && stat (path, &st) == 0 && S_ISREG (st.st_mode))
            return true;
        p += len;
        if (!*p)
            return false;
    }
}

int exec_error (const char *name, int error)
{
    /* git's sane_execvp() does the same */
    return error == EACCES && !strchr (name, '/') && !is_in_path (name) ? ENOENT : error;
}

/* Duplicate the descriptors first, because 0, 1 and 2 may be among them. */
static void set_descriptors (const int *io)
{
    int from[3];

    for (int i = 0; i < 3; i++)
        from[i] =
            io[i] < 0 ? open ("/dev/null", O_RDWR | O_CLOEXEC) : fcntl (io[i], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        dup2 (from[i], i);
}

/* 'report' is a pipe to write errno to; -1: none. */
static void __attribute__ ((noreturn)) run (const struct spawn *s, int report)
{
    const char *what = s->argv[0];
    int e;

    if (s->new_group)
        setpgid (0, 0);
    if (report >= 0)
        report = fcntl (report, F_DUPFD_CLOEXEC, 3);
    set_descriptors (s->io);
    if (s->prepare)
        s->prepare (s->arg);
    default_handlers ();
    unblock_signals ();
    if (s->dir && chdir (s->dir) < 0)
        what = s->dir;
    else
        execvp (s->argv[0], s->argv);
    e = errno;
    if (report >= 0 && write (report, &e, sizeof (e)) < 0)
        _exit (126);
    if (what != s->dir)
        e = exec_error (what, e);
    dprintf (2, "%s: %s\n", what, strerror (e));
    _exit (e == ENOENT && what != s->dir ? 127 : 126);
}

/* Read the errno of exec() from the pipe, which just closes if exec() succeeds. */
static int take_error (int fd)
{
    int e = 0;

    while (read (fd, &e, sizeof (e)) < 0 && errno == EINTR)
        ;
    close (fd);
    return e;
}

pid_t subprocess_spawn (const struct spawn *s)
{
    sigset_t all;
    sigset_t before;
    int report[2] = { -1, -1 };
    pid_t pid;

    if (s->error && pipe2 (report, O_CLOEXEC) < 0)
        return -1;
    sigfillset (&all);
    sigprocmask (SIG_BLOCK, &all, &before);
    if ((pid = start_child (s->death_signal)) == 0)
        run (s, report[1]);
    sigprocmask (SIG_SETMASK, &before, NULL);
    if (pid > 0 && s->new_group)
        setpgid (pid, pid);
    if (s->error) {
        int e = errno;
        close (report[1]);
        *s->error = take_error (report[0]);
        errno = e;
    }
    return pid;
}

int subprocess_wait (pid_t pid)
{
    int status = -1;

    while (pid > 0 && waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

int shell_status (int status)
{
    return WIFSIGNALED (status) ? 128 + WTERMSIG (status) : WEXITSTATUS (status);
}

void command_add (struct command *c, const char *option, const char *value)
{
    if (c->n >= COMMAND_ARGS - 1)
        return;
    if (!value)
        c->argv[c->n++] = option;
    else
        c->argv[c->n++] = c->owned[c->nowned++] = xasprintf ("%s=%s", option, value);
}

void command_number (struct command *c, const char *option, long long value)
{
    char text[32];

    snprintf (text, sizeof (text), "%lld", value);
    command_add (c, option, text);
}

void command_free (struct command *c)
{
    for (int i = 0; i < c->nowned; i++)
        free (c->owned[i]);
}

/* Wait for output, or its end, until 'deadline'; 0: for ever. */
static bool has_output (int fd, double deadline)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    double left;

    do {
        left = deadline > 0 ? deadline - monotonic () : 0;
        if (deadline > 0 && left <= 0)
            return false;
    } while (poll (&p, 1, deadline > 0 ? (int)(1000 * left) + 1 : -1) < 1);
    return true;
}

/* Read the rest, so that a program whose output does not fit does not block. */
static void drain (int fd, double deadline)
{
    char rest[4096];
    ssize_t n;

    while (has_output (fd, deadline)
           && ((n = read (fd, rest, sizeof (rest))) > 0 || (n < 0 && errno == EINTR)))
        ;
}

static void read_output (int fd, pid_t pid, const char *enough, double deadline, char *buf,
                         size_t size)
{
    size_t fill = 0;
    ssize_t n;

    while (fill < size - 1 && has_output (fd, deadline)
           && (n = read (fd, buf + fill, size - 1 - fill)) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        fill += (size_t)n;
        buf[fill] = '\0';
        if (enough && strstr (buf, enough))
            kill (pid, SIGTERM);
    }
    buf[fill] = '\0';
    drain (fd, deadline);
    /* srun retries after SIGALRM, and its children keep the pipe open */
    if (deadline > 0 && monotonic () >= deadline)
        kill (pid, SIGKILL);
    while (fill > 0 && buf[fill - 1] == '\n')
        buf[--fill] = '\0';
}

static void prepare_command (const void *arg)
{
    const struct command *c = arg;

    if (!c->keeps_job)
        variables_drop (variable_is_of_job);
    alarm (c->timeout);
}

int command_run (struct command *c, const char *enough, char *buf, size_t size)
{
    int out[2];
    int status = -1;
    const double deadline = c->timeout ? monotonic () + c->timeout : 0;
    pid_t pid;

    *buf = '\0';
    if (pipe2 (out, O_CLOEXEC) < 0)
        return -1;
    c->argv[c->n] = NULL;
    pid = subprocess_spawn (&(struct spawn){ .argv = (char *const *)c->argv,
                                             .io = { -1, out[1], c->no_errors ? -1 : out[1] },
                                             .prepare = prepare_command,
                                             .arg = c });
    close (out[1]);
    if (pid > 0) {
        read_output (out[0], pid, enough, deadline, buf, size);
        status = subprocess_wait (pid);
    }
    close (out[0]);
    return status;
}
