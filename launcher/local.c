/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as processes of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd.h"
#include "runtime/error.h"

enum { TRIES_MAX = 20 };

struct local_worker {
    pid_t pid; /* 0: ended for good */
    int tries;
    char slot[48];
};

static int spawn (struct executor *x, struct local_worker *w)
{
    char log[PATH_MAX];
    int fd;

    snprintf (log, sizeof (log), "%s/workers/%s.log", x->sweep->dir, w->slot);
    fd = open (log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    w->pid = fd < 0 ? -1 : fork ();
    if (w->pid == 0) {
        int null = open ("/dev/null", O_RDONLY);
        dup2 (null, 0);
        dup2 (fd, 1);
        dup2 (fd, 2);
        execl (x->dl,
               "dl",
               "worker",
               "--slot",
               w->slot,
               "--",
               x->sweep->dir,
               NULL);
        dprintf (2, "dl: %s: %s\n", x->dl, strerror (errno));
        _exit (127);
    }
    if (fd >= 0)
        close (fd);
    w->tries++;
    return w->pid < 0 ? -1 : 0;
}

static int start (struct executor *x, struct slurmdl_error *err)
{
    if (!(x->pool = calloc ((size_t)x->workers, sizeof (*x->pool))))
        return errorf (err, "out of memory");
    for (long i = 0; i < x->workers; i++) {
        /* unique: another dl on this machine may work at the same sweep */
        snprintf (x->pool[i].slot,
                  sizeof (x->pool[i].slot),
                  "local-%ld-%ld",
                  (long)getpid (),
                  i + 1);
        if (spawn (x, &x->pool[i]) < 0)
            return errorf (err, "cannot start a worker: %s", strerror (errno));
    }
    return 0;
}

static bool is_final (int status)
{
    if (!WIFEXITED (status))
        return false;
    switch (WEXITSTATUS (status)) {
    case EXIT_OK:
    case EXIT_PARKED:
    case EXIT_EXCLUDED:
    case EXIT_USAGE:
    case EXIT_NOT_FOUND:
    case EXIT_DAMAGED:
        return true;
    }
    return false;
}

static int tick (struct executor *x)
{
    int alive = 0;
    int status;

    for (long i = 0; i < x->workers; i++) {
        struct local_worker *w = &x->pool[i];
        if (w->pid > 0 && waitpid (w->pid, &status, WNOHANG) == w->pid) {
            w->pid = 0;
            if (!is_final (status) && w->tries < TRIES_MAX)
                spawn (x, w);
            else if (WIFEXITED (status)
                     && WEXITSTATUS (status) == EXIT_EXCLUDED)
                x->excluded = true;
            else if (!WIFEXITED (status) || WEXITSTATUS (status))
                snprintf (x->note,
                          sizeof (x->note),
                          "a worker ended early: see %.60s/workers/%s.log",
                          x->sweep->dir,
                          w->slot);
        }
        alive += w->pid > 0;
    }
    return alive > 0;
}

static void leave (struct executor *x)
{
    puts ("stopping the workers: trials save what they have");
    fflush (stdout);
    for (long i = 0; i < x->workers; i++)
        if (x->pool[i].pid > 0)
            kill (x->pool[i].pid, SIGTERM);
    for (long i = 0; i < x->workers; i++)
        if (x->pool[i].pid > 0)
            waitpid (x->pool[i].pid, NULL, 0);
}

static void close_local (struct executor *x)
{
    free (x->pool);
    x->pool = NULL;
}

const struct executor_ops executor_local = {
    "local", start, tick, leave, close_local,
};

int executor_open (struct executor *x,
                   const struct sweep *sweep,
                   const struct settings *st,
                   struct slurmdl_error *err)
{
    ssize_t n;

    *x = (struct executor){
        .ops = st->local ? &executor_local : &executor_slurm,
        .sweep = sweep,
        .workers = (long)(st->workers ? st->workers : sweep->exp->workers),
    };
    n = readlink ("/proc/self/exe", x->dl, sizeof (x->dl) - 1);
    if (n < 0)
        return errorf (err, "/proc/self/exe: %s", strerror (errno));
    x->dl[n] = '\0';
    return 0;
}
