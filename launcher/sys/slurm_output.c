/* SPDX-License-Identifier: Apache-2.0 */
/* Where sbatch puts the output of a job. */
#include "launcher/sys/slurm_output.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "launcher/sys/subprocess.h"

/* Slurm expands %j in the folder, too.  With a backslash anywhere in the path,
 * be it of the job's working folder, it takes the backslashes out and expands
 * nothing, so that all tasks of an array would have one file.
 */
void slurm_add_output (struct command *c, const char *folder, const char *file)
{
    char text[2 * PATH_MAX + 64], *to = text;

    if (strchr (folder, '\\')) {
        command_add (c, "--output", "/dev/null");
        return;
    }
    for (const char *at = folder; *at && to < text + 2 * PATH_MAX; at++) {
        *to++ = *at;
        if (*at == '%')
            *to++ = '%';
    }
    snprintf (to, 64, "/%s", file);
    command_add (c, "--output", text);
}
