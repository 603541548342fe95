/* SPDX-License-Identifier: Apache-2.0 */
/* Run another program and take what it prints. */
#include "launcher/sys/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

void command_add (struct command *c, const char *option, const char *value)
{
    char *text = NULL;

    if (c->n >= COMMAND_ARGS - 1)
        return;
    if (!value)
        c->argv[c->n++] = option;
    else if (asprintf (&text, "%s=%s", option, value) > 0)
        c->argv[c->n++] = c->owned[c->nowned++] = text;
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

int command_is_of_job (const char *variable)
{
    return (!strncmp (variable, "SLURM_", 6)
            || !strncmp (variable, "_SLURM_", 7))
           && strncmp (variable, "SLURM_CONF=", 11);
}

static void
read_all (int fd, pid_t pid, const char *enough, char *buf, size_t size)
{
    size_t fill = 0;
    ssize_t n;

    while (fill < size - 1
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
    while (fill > 0 && buf[fill - 1] == '\n')
        buf[--fill] = '\0';
}

static void drop_job (void)
{
    char **to = environ;

    for (char **v = environ; *v; v++)
        if (!command_is_of_job (*v))
            *to++ = *v;
    *to = NULL;
}

static void child (struct command *c, int out)
{
    int null = open ("/dev/null", O_RDONLY);
    sigset_t none;

    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    dup2 (null, 0);
    dup2 (out, 1);
    dup2 (out, 2);
    drop_job ();
    alarm (c->patience);
    c->argv[c->n] = NULL;
    execvp (c->argv[0], (char *const *)c->argv);
    dprintf (2, "%s: %s", c->argv[0], strerror (errno));
    _exit (127);
}

int command_run (struct command *c, const char *enough, char *buf, size_t size)
{
    int out[2];
    int status = -1;
    pid_t pid;

    *buf = '\0';
    if (pipe2 (out, O_CLOEXEC) < 0)
        return -1;
    if ((pid = fork ()) == 0)
        child (c, out[1]);
    close (out[1]);
    if (pid > 0) {
        read_all (out[0], pid, enough, buf, size);
        while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close (out[0]);
    return pid > 0 && WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}
