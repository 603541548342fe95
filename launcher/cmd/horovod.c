/* SPDX-License-Identifier: Apache-2.0 */
/* dl horovod: start a rank of Horovod's, and beside rank 0 their server. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/rendezvous.h"
#include "launcher/sys/say.h"

static volatile int ended;

static void on_child (int sig)
{
    (void)sig;
    ended = 1;
}

static int start_program (char **args)
{
    execvp (args[0], args);
    complain ("%s: %s", args[0], strerror (errno));
    return errno == ENOENT ? 127 : 126;
}

/* The signals that Slurm sends are for the program, which is in the same
 * process group; this process ends when the program does.
 */
static void ignore_signals (void)
{
    static const int signals[] = { SIGTERM, SIGINT,  SIGHUP,  SIGUSR1,
                                   SIGUSR2, SIGQUIT, SIGCONT, SIGPIPE };

    for (size_t i = 0; i < sizeof (signals) / sizeof (*signals); i++)
        signal (signals[i], SIG_IGN);
}

/* End as the program did, by its signal too, but without a second core file. */
static int end_like (pid_t pid)
{
    struct rlimit none = { 0, 0 };
    int status = 0;

    while (waitpid (pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFSIGNALED (status))
        return WEXITSTATUS (status);
    setrlimit (RLIMIT_CORE, &none);
    signal (WTERMSIG (status), SIG_DFL);
    raise (WTERMSIG (status));
    return 128 + WTERMSIG (status);
}

static int serve (struct rendezvous *r, char **args)
{
    struct sigaction on_end = { .sa_handler = on_child,
                                .sa_flags = SA_NOCLDSTOP };
    sigset_t child;
    sigset_t before;
    pid_t pid;

    sigemptyset (&child);
    sigaddset (&child, SIGCHLD);
    sigprocmask (SIG_BLOCK, &child, &before);
    sigaction (SIGCHLD, &on_end, NULL);
    pid = fork ();
    if (pid < 0) {
        complain ("cannot start %s: %s", args[0], strerror (errno));
        return EXIT_IO;
    }
    if (pid == 0) {
        prctl (PR_SET_PDEATHSIG, SIGKILL);
        signal (SIGCHLD, SIG_DFL);
        sigprocmask (SIG_SETMASK, &before, NULL);
        _exit (start_program (args));
    }
    ignore_signals ();
    rendezvous_serve (r, &ended);
    return end_like (pid);
}

int cmd_horovod (const struct settings *st)
{
    const char *rank = getenv ("HOROVOD_RANK");
    const char *address = getenv ("HOROVOD_GLOO_RENDEZVOUS_ADDR");
    const char *port = getenv ("HOROVOD_GLOO_RENDEZVOUS_PORT");
    struct slurmdl_error err = { "" };
    struct rendezvous *r;
    int rv;

    if (!rank || !address || !port) {
        complain ("HOROVOD_RANK and HOROVOD_GLOO_RENDEZVOUS_ADDR, _PORT are "
                  "not set: start it with srun --dl=horovod");
        return EXIT_USAGE;
    }
    if (strcmp (rank, "0"))
        return start_program (st->args);
    r = rendezvous_create (address, port, &err);
    if (!r)
        return fail (&err);
    rv = serve (r, st->args);
    rendezvous_destroy (r);
    return rv;
}
