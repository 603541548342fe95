/* SPDX-License-Identifier: Apache-2.0 */
/* dl within: run a command in the container of DL_SOFTWARE. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launcher/code/activate.h"
#include "launcher/code/container.h"
#include "launcher/code/software_record.h"
#include "launcher/code/software_within.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"

extern char **environ;

enum { NOT_RUN = 126, NO_PROGRAM = 127 };

/* As a process of its own: SIGKILL ends podman, but not what conmon has
 * started for it.
 */
static void remove_after (const char *program, const char *name)
{
    pid_t me = getpid ();
    int process = (int)syscall (SYS_pidfd_open, me, 0);
    struct pollfd end = { .fd = process, .events = POLLIN };
    int null;

    if (process < 0 || subprocess_fork (0) != 0) {
        close (process);
        return;
    }
    setsid ();
    if ((null = open ("/dev/null", O_RDWR)) >= 0)
        for (int i = 0; i < 3; i++)
            dup2 (null, i);
    while (poll (&end, 1, -1) < 0 && errno == EINTR)
        ;
    execlp (program, program, "rm", "--force", "--ignore", "--time=0", name, (char *)NULL);
    _exit (NO_PROGRAM);
}

static int run (char *const *argv)
{
    int e;

    execvp (argv[0], argv);
    e = exec_error (argv[0], errno);
    complain ("%s: cannot run: %s", argv[0], strerror (e));
    return e == ENOENT ? NO_PROGRAM : NOT_RUN;
}

static int run_contained (const struct software *s, char *const *folders, char *const *command)
{
    struct slurmdl_error err = { "" };
    char *name;
    char **argv = container_command (s, folders, command, &name, &err);
    int rv = NOT_RUN;

    if (argv) {
        if (name)
            remove_after (argv[0], name);
        rv = run (argv);
    } else
        complain ("%s", err.text);
    strings_free (argv);
    free (name);
    return rv;
}

int cmd_within (const struct settings *st)
{
    const char *text = getenv ("DL_SOFTWARE");
    struct slurmdl_error err = { "" };
    struct software s;
    char **folders;
    int rv = NOT_RUN;

    if (software_parse (text ? text : "{}", &s, &folders) < 0)
        complain ("DL_SOFTWARE is no JSON object");
    else if (software_activate (&s, ".", NULL, &err) < 0)
        complain ("%s", err.text);
    else {
        environ = s.activated ? s.activated : environ;
        rv = s.image ? run_contained (&s, folders, st->args) : run (st->args);
        environ = NULL;
    }
    software_free (&s);
    strings_free (folders);
    return rv;
}
