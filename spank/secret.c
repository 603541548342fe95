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

enum { BYTES = SECRET_TEXT / 2 };

static const char variable[] = "DL_SECRET";

int secret_random (char text[SECRET_TEXT])
{
    unsigned char secret[BYTES];

    if (getrandom (secret, sizeof (secret), 0) != sizeof (secret))
        return -1;
    for (int i = 0; i < BYTES; i++)
        snprintf (text + 2 * (size_t)i, 3, "%02x", secret[i]);
    explicit_bzero (secret, sizeof (secret));
    return 0;
}

static void make (void)
{
    char text[SECRET_TEXT];

    if (secret_random (text) < 0) {
        unsetenv (variable);
        plugin_complain ("no secret for this step: %s", strerror (errno));
        return;
    }
    setenv (variable, text, 1);
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
