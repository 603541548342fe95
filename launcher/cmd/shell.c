/* SPDX-License-Identifier: Apache-2.0 */
/* dl shell: open an interactive shell in a step. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"

enum { TELL_AFTER = 5 /* s */ };

static void print_shell_note (long job)
{
    char state[256];

    if (slurm_job_text (job, state, sizeof (state)) == 0 && !strncmp (state, "PENDING", 7))
        complain ("job %ld: %s; ^C cancels it", job, state);
}

/* srun prints that its job is waiting but not why, so ask Slurm once. */
static void relay_srun_messages (int from)
{
    struct pollfd p = { .fd = from, .events = POLLIN };
    char said[4096];
    long job = 0;
    ssize_t n;

    for (;;) {
        if (job && poll (&p, 1, TELL_AFTER * 1000) == 0)
            print_shell_note (job);
        if ((n = read (from, said, sizeof (said) - 1)) <= 0)
            return;
        said[n] = '\0';
        fputs (said, stderr);
        job = slurm_queued_job (said);
    }
}

/* Leave ^C to srun, which cancels a waiting job. */
static int run_srun (char *const *argv)
{
    int err[2];
    pid_t pid;

    if (pipe2 (err, O_CLOEXEC) < 0) {
        complain ("srun: %s", strerror (errno));
        return EXIT_SLURM;
    }
    pid = subprocess_spawn (
        &(struct spawn){ .argv = argv, .io = { 0, 1, err[1] }, .death_signal = SIGTERM });
    close (err[1]);
    signal (SIGINT, SIG_IGN);
    signal (SIGQUIT, SIG_IGN);
    relay_srun_messages (err[0]);
    close (err[0]);
    return subprocess_wait (pid);
}

int cmd_shell (const struct command_line *line)
{
    const char *given = getenv ("SHELL");
    const char *shell = given && *given == '/' ? given : "/bin/sh";
    char **argv = NULL;
    int rv;

    if (!isatty (STDIN_FILENO)) {
        complain ("shell: standard input is not a terminal: use srun or sbatch");
        return EXIT_USAGE;
    }
    slurm_terminal_words (&argv);
    for (int i = 0; i < line->nargs; i++)
        strings_add (&argv, line->args[i]);
    strings_add (&argv, shell);
    strings_add (&argv, "-i");
    rv = run_srun (argv);
    strings_free (argv);
    return rv < 0 ? EXIT_SLURM : rv;
}
