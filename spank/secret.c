/* SPDX-License-Identifier: Apache-2.0 */
/* DL_SECRET: 128 bits that the processes of a step have, and nobody else. */
#include "spank/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "spank/context.h"

enum { BYTES = 16 };

static const char variable[] = "DL_SECRET";

static void make (void)
{
    unsigned char secret[BYTES];
    char text[2 * BYTES + 1];

    if (getrandom (secret, sizeof (secret), 0) != sizeof (secret)) {
        unsetenv (variable);
        plugin_complain ("no secret for this step: %s", strerror (errno));
        return;
    }
    for (int i = 0; i < BYTES; i++)
        snprintf (text + 2 * (size_t)i, 3, "%02x", secret[i]);
    setenv (variable, text, 1);
    explicit_bzero (secret, sizeof (secret));
    explicit_bzero (text, sizeof (text));
}

/* srun calls this for each component of a heterogeneous job. */
void plugin_secret (bool wanted)
{
    static pid_t made;

    if (made == getpid ())
        return;
    if (wanted) {
        make ();
        made = getpid ();
    } else if (getenv ("SLURM_STEP_ID") && *getenv ("SLURM_STEP_ID"))
        unsetenv (variable);
}
