/* SPDX-License-Identifier: Apache-2.0 */
/* One rank of a trial that is a step: srun's signals become a trainer's. */
#include "launcher/trainer/rank_proxy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/say.h"
#include "launcher/sys/subprocess.h"

/* srun passes SIGUSR2 on to all processes of its step, but takes SIGTERM for
 * an order to kill them.  So the worker says SIGUSR2, which the command
 * ignores unless it wants it, and here the command gets its SIGTERM.
 *
 * A SIGTERM that comes from Slurm (preemption) has reached the command
 * already.  Then its end is no result: this waits for Slurm to kill the job,
 * which comes back.
 */

/* Its end may come before the SIGTERM that caused it comes here: Slurm signals
 * one process after the other.
 */
enum { LATE_MS = 200 };

struct rank_proxy {
    pid_t pid;
    int signals;
    bool asked;
    bool preempted;
};

static const int watched[] = { SIGTERM, SIGUSR2, SIGCHLD };

static void watch (struct rank_proxy *r)
{
    sigset_t set;

    sigemptyset (&set);
    for (size_t i = 0; i < sizeof (watched) / sizeof (*watched); i++)
        sigaddset (&set, watched[i]);
    sigprocmask (SIG_BLOCK, &set, NULL);
    r->signals = signalfd (-1, &set, SFD_CLOEXEC);
}

static void ignore_request (const void *arg)
{
    (void)arg;
    signal (SIGUSR2, SIG_IGN);
}

static void on_signal (struct rank_proxy *r)
{
    struct signalfd_siginfo info;

    if (read (r->signals, &info, sizeof (info)) != sizeof (info))
        return;
    if (info.ssi_signo == SIGTERM)
        r->preempted = true;
    if (info.ssi_signo == SIGUSR2 && !r->asked) {
        r->asked = true;
        kill (-r->pid, SIGTERM);
    }
}

static void late_signals (struct rank_proxy *r)
{
    struct pollfd p = { .fd = r->signals, .events = POLLIN };

    while (!r->preempted && poll (&p, 1, LATE_MS) == 1)
        on_signal (r);
}

/* A rank that ends badly ends the others (srun --kill-on-bad-exit): not while
 * they save what they have.
 */
static int exit_status (const struct rank_proxy *r, int status)
{
    if (r->preempted && !r->asked) {
        sleep (PREEMPT_WAIT);
        return EXIT_PARKED;
    }
    if (r->asked)
        return EXIT_OK;
    return WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
}

int cmd_rank (const struct settings *st)
{
    const struct spawn command = { .argv = st->args,
                                   .io = { 0, 1, 2 },
                                   .new_group = true,
                                   .death_signal = SIGKILL,
                                   .prepare = ignore_request };
    struct rank_proxy r = { .signals = -1 };
    int status;

    watch (&r);
    if (r.signals < 0 || (r.pid = subprocess_spawn (&command)) < 0) {
        complain ("rank: %s", strerror (errno));
        return EXIT_FAILED;
    }
    while (waitpid (r.pid, &status, WNOHANG) == 0)
        on_signal (&r);
    if (!r.asked)
        late_signals (&r);
    return exit_status (&r, status);
}
