/* SPDX-License-Identifier: Apache-2.0 */
/* A job with options of the plugin, whose steps are started without it. */
#include "spank/absent.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <slurm/spank.h>

/* srun runs the program in this variable before a step, and where nothing of
 * ours is loaded nothing else of ours is run.
 */
static const char variable[] = "SLURM_PROLOG";
static const char program[] = PLUGSTACKDIR "/dl.so-is-not-loaded";

/* One that the user has chosen stays. */
void absent_tell (void)
{
    if (access (program, X_OK) == 0)
        setenv (variable, program, 0);
}

void absent_forget (void)
{
    const char *own = strrchr (program, '/');
    const char *value = getenv (variable);
    const char *name = value ? strrchr (value, '/') : NULL;

    if (spank_context () != S_CTX_REMOTE && name && !strcmp (name, own))
        unsetenv (variable);
}
