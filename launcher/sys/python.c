/* SPDX-License-Identifier: Apache-2.0 */
/* Run modules of slurm-dl's Python package. */
#include "launcher/sys/python.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

/* Do not let Python import modules from the current directory. */
static const char python_probe[] =
    "import sys\n"
    "sys.path[:] = [p for p in sys.path if p]\n"
    "try:\n"
    "    from importlib import import_module\n"
    "    main = import_module(sys.argv[1]).main\n"
    "except ImportError as error:\n"
    "    sys.stderr.write('dl: %s: %s: install the Python package of slurm-dl (pip "
    "install " PYTHON_SOURCE
    "), or name another python in DL_PYTHON\\n' % (sys.executable, error))\n"
    "    sys.exit(3)\n"
    "sys.exit(main(*sys.argv[2:]))\n";

static const char *python_name (void)
{
    const char *given = getenv ("DL_PYTHON");

    return given && *given ? given : "python3";
}

pid_t python_start (const char *module, char *const *args, int in, struct slurmdl_error *err)
{
    size_t n = 0;
    char **argv;
    pid_t pid;

    while (args[n])
        n++;
    argv = xcalloc (n + 5, sizeof (*argv));
    argv[0] = (char *)python_name ();
    argv[1] = (char *)"-c";
    argv[2] = (char *)python_probe;
    argv[3] = (char *)module;
    memcpy (argv + 4, args, n * sizeof (*argv));
    /* a child that outlived this process would write concurrently with the next one */
    pid = subprocess_spawn (
        &(struct spawn){ .argv = argv, .io = { in, 1, 2 }, .death_signal = SIGKILL });
    if (pid < 0)
        errorf (err, "%s: cannot start: %s", argv[0], strerror (errno));
    free (argv);
    return pid;
}

int python_wait (pid_t pid, const char *what)
{
    int status;

    while (waitpid (pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_IO;
    if (WIFSIGNALED (status)) {
        complain ("%s: killed by signal %d; run %s again to do the rest", python_name (),
                  WTERMSIG (status), what);
        return EXIT_IO;
    }
    if (WEXITSTATUS (status) == 126 || WEXITSTATUS (status) == 127) {
        complain ("%s needs Python: install it, or name one in DL_PYTHON", what);
        return EXIT_NOT_FOUND;
    }
    return WEXITSTATUS (status);
}
