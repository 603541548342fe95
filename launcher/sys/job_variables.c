/* SPDX-License-Identifier: Apache-2.0 */
/* Which environment variables Slurm sets for a job, and which for a step. */
#include "launcher/sys/job_variables.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

bool variable_is_of_job (const char *variable)
{
    return (!strncmp (variable, "SLURM_", 6) || !strncmp (variable, "_SLURM_", 7))
           && strncmp (variable, "SLURM_CONF=", 11);
}

bool variable_is_of_step (const char *variable)
{
    static const char *const of_job[] = {
        "SLURM_JOB_",
        "SLURM_JOBID=",
        "SLURM_ARRAY_",
        "SLURM_CLUSTER_NAME",
        "SLURM_SUBMIT_",
        /* options of our plugin that sbatch was given, for every step */
        "SLURM_SPANK__SLURM_SPANK_OPTION_dl_",
        NULL,
    };

    if (!variable_is_of_job (variable))
        return false;
    for (const char *const *name = of_job; *name; name++)
        if (!strncmp (variable, *name, strlen (*name)))
            return false;
    return true;
}

void variables_drop (bool (*is) (const char *variable))
{
    char **to = environ;

    for (char **v = environ; *v; v++)
        if (!is (*v))
            *to++ = *v;
    *to = NULL;
}
