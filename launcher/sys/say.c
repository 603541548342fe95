/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on standard error, and the table of exit statuses. */
#include "launcher/sys/say.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
const struct exit_row exit_table[] = {
    { EXIT_OK,         "success; of those that follow an experiment: it completed" },
    { EXIT_FAILED,     "the experiment failed: no trial gave a result; of dl env: a contradiction; of dl doctor: something must be changed; of dl ckpt diff: they differ" },
    { EXIT_USAGE,      "bad option, argument or experiment file, or not in this state; nothing was done" },
    { EXIT_NOT_FOUND,  "no such experiment, trial or file" },
    { EXIT_STOPPED,    "the experiment was paused (dl resume goes on), stopped or killed (dl continue)" },
    { EXIT_DAMAGED,    "the experiment's files, or a checkpoint, are damaged" },
    { EXIT_SLURM,      "Slurm did not take the job" },
    { EXIT_IO,         "reading or writing failed (disk full, quota, permission)" },
    { EXIT_NO_WORKERS, "no worker is left and the experiment is not finished; dl resume goes on" },
    { EXIT_BUSY,       "workers are at work on the experiment" },
    { EXIT_TIMEOUT,    "the time of dl wait is over" },
    { EXIT_PARKED,     "a worker was told to go while there is work left" },
    { EXIT_EXCLUDED,   "the same, and its machine is excluded from the experiment" },
    { EXIT_BAD_NODE,   "dl check: this node is bad (75: only others are, or none is to blame)" },
    { -1, NULL },
};
/* clang-format on */

/* One line, whatever a name or another program's text in it has. */
void complain (const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;

    va_start (ap, fmt);
    if (vasprintf (&text, fmt, ap) < 0)
        text = NULL;
    va_end (ap);
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ';';
        else if (iscntrl ((unsigned char)*c) && *c != '\t')
            *c = '?';
    fprintf (stderr, "dl: %s\n", text ? text : "out of memory");
    free (text);
}

int error_status (int e)
{
    switch (e) {
    case EBADMSG:
        return EXIT_DAMAGED;
    case ENOENT:
        return EXIT_NOT_FOUND;
    case EINVAL:
        return EXIT_USAGE;
    default:
        return EXIT_IO;
    }
}

int fail (const struct slurmdl_error *err)
{
    int e = errno;

    complain ("%s", *err->text ? err->text : strerror (e));
    return error_status (e);
}
