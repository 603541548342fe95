/* SPDX-License-Identifier: Apache-2.0 */
/* dl tensorboard: run TensorBoard on experiments, even while they run. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/user.h"

/* Python must not import modules from the current directory, hence the change of
 * sys.path.
 */
static const char board_program[] =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "try:\n"
    "    from slurmdl.export.board import main\n"
    "except ImportError as error:\n"
    "    sys.stderr.write('dl: %s: %s: install the Python package of slurm-dl (pip "
    "install " PYTHON_SOURCE
    "), or name another python in DL_PYTHON\\n' % (sys.executable, error))\n"
    "    sys.exit(3)\n"
    "sys.exit(main(sys.argv[1]))\n";

static volatile sig_atomic_t tensorboard_interrupted;

static void on_tensorboard_interrupt (int sig)
{
    (void)sig;
    tensorboard_interrupted = 1;
}

static pid_t spawn_tensorboard (char *const *argv, int output)
{
    return subprocess_spawn (
        &(struct spawn){ .argv = argv, .io = { -1, output, 2 }, .death_signal = SIGKILL });
}

static int start_export (const struct command_line *line, const char *name, const char *folder,
                         pid_t *pid)
{
    static char own[PATH_MAX];
    char output[PATH_MAX + 16];
    char *argv[] = { own,
                     (char *)"export",
                     (char *)"--format=tensorboard",
                     (char *)"--follow",
                     output,
                     (char *)"--",
                     NULL,
                     NULL };
    struct sweep *s;
    int rv = open_experiment (line, name, &s);

    if (rv != EXIT_OK)
        return rv;
    own_program (own);
    snprintf (output, sizeof (output), "--output=%s", folder);
    argv[6] = s->dir;
    if ((*pid = spawn_tensorboard (argv, -1)) < 0) { /* discard its output */
        complain ("%s: %s", own, strerror (errno));
        rv = EXIT_IO;
    }
    sweep_close (s);
    return rv;
}

static int serve_tensorboard (char *folder)
{
    const char *given = getenv ("DL_PYTHON");
    const char *python = given && *given ? given : "python3";
    char *argv[] = { (char *)python, (char *)"-c", (char *)board_program, folder, NULL };
    int status = 0;
    pid_t pid = spawn_tensorboard (argv, 1);
    pid_t ended = -1;

    while (pid > 0 && (ended = waitpid (pid, &status, 0)) < 0 && errno == EINTR)
        if (tensorboard_interrupted)
            kill (pid, SIGTERM);
    if (pid < 0 || ended != pid)
        return EXIT_IO;
    if (WIFSIGNALED (status))
        return EXIT_OK;
    switch (WEXITSTATUS (status)) {
    case 126:
    case 127:
        complain ("tensorboard needs Python: install it, or name one in DL_PYTHON");
        return EXIT_NOT_FOUND;
    default:
        return WEXITSTATUS (status);
    }
}

static void end_exports (const pid_t *pids, int n)
{
    for (int i = 0; i < n; i++)
        if (pids[i] > 0) {
            kill (pids[i], SIGKILL);
            subprocess_wait (pids[i]);
        }
}

int cmd_tensorboard (const struct command_line *line)
{
    const struct sigaction quiet = { .sa_handler = on_tensorboard_interrupt };
    pid_t *pids = xcalloc ((size_t)line->nargs + 1, sizeof (*pids));
    char folder[PATH_MAX] = "";
    int rv = serve_tensorboard (folder);

    if (rv != EXIT_OK) {
        free (pids);
        return rv;
    }
    snprintf (folder, sizeof (folder), "%s/dl-tensorboard.XXXXXX", user_tmp ());
    if (!mkdtemp (folder)) {
        free (pids);
        complain ("%s: %s", folder, strerror (errno));
        return EXIT_IO;
    }
    sigaction (SIGINT, &quiet, NULL);
    sigaction (SIGTERM, &quiet, NULL);
    sigaction (SIGHUP, &quiet, NULL);
    for (int i = 0; i < line->nargs && rv == EXIT_OK; i++)
        rv = start_export (line, line->args[i], folder, &pids[i]);
    if (rv == EXIT_OK)
        rv = serve_tensorboard (folder);
    end_exports (pids, line->nargs);
    free (pids);
    remove_tree (folder);
    return rv;
}
