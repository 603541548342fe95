/* SPDX-License-Identifier: Apache-2.0 */
/* Run the command dl for a task, or beside it. */
#include "spank/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spank/context.h"

enum { ARGS = 31, NOT_RUN = 127 };

extern char **environ;

/* Slurm calls task_init after it has become the user, with all three ids. */
static bool is_users (spank_t sp)
{
    uid_t real, effective, saved;
    uid_t user;

    if (spank_context () == S_CTX_LOCAL)
        return true;
    return spank_get_item (sp, S_JOB_UID, &user) == ESPANK_SUCCESS
           && getresuid (&real, &effective, &saved) == 0 && real == user
           && effective == user && saved == user;
}

static char **environment (spank_t sp)
{
    char **env;

    if (spank_context () == S_CTX_LOCAL
        || spank_get_item (sp, S_JOB_ENV, &env) != ESPANK_SUCCESS)
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

/* Between fork and exec, in a process that may have had threads. */
static void become (char **argv, char **env, unsigned seconds)
{
    int null = open ("/dev/null", O_RDONLY);

    plain_signals ();
    if (null >= 0)
        dup2 (null, 0);
    if (null > 2)
        close (null);
    dup2 (2, 1);
    alarm (seconds);
    execve (option_command (), argv, env);
    _exit (NOT_RUN);
}

static int prepare (spank_t sp, const char *const *args, char **argv)
{
    size_t n = 0;

    if (!is_users (sp)) {
        errno = EPERM;
        return -1;
    }
    argv[n++] = "dl";
    for (; *args && n < ARGS; args++)
        argv[n++] = (char *)*args;
    argv[n] = NULL;
    return access (option_command (), X_OK);
}

static int end_of (pid_t pid)
{
    int status;

    while (waitpid (pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

int helper_wait (spank_t sp, const char *const *args, unsigned seconds)
{
    char *argv[ARGS + 1];
    pid_t pid;

    if (prepare (sp, args, argv) < 0 || (pid = fork ()) < 0)
        return -1;
    if (pid == 0)
        become (argv, environment (sp), seconds);
    return end_of (pid);
}

int helper_detach (spank_t sp, const char *const *args)
{
    char *argv[ARGS + 1];
    pid_t pid;

    if (prepare (sp, args, argv) < 0 || (pid = fork ()) < 0)
        return -1;
    if (pid == 0) {
        setsid ();
        if ((pid = fork ()) == 0)
            become (argv, environment (sp), 0);
        _exit (pid < 0 ? NOT_RUN : 0);
    }
    return end_of (pid) == 0 ? 0 : -1;
}
