/* SPDX-License-Identifier: Apache-2.0 */
/* What Slurm says of a job. */
#include "launcher/interactive/job.h"

#include <stdio.h>
#include <string.h>

#include "launcher/sys/subprocess.h"

int job_state (long job, char *buf, size_t size)
{
    struct command c = { .timeout = 60 };
    char said[1024], line[1024];
    int status;

    command_add (&c, "squeue", NULL);
    command_add (&c, "--noheader", NULL);
    command_add (&c, "--format", "%T %r");
    command_number (&c, "--jobs", job);
    status = command_run (&c, NULL, said, sizeof (said));
    command_free (&c);
    if ((status == 0 && !*said) || strstr (said, "Invalid job id"))
        return -1;
    command_said (line, sizeof (line), said);
    snprintf (buf, size, "%s%s", status == 0 ? "" : "UNKNOWN ", line);
    return 0;
}
