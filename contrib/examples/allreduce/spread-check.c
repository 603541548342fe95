/* SPDX-License-Identifier: Apache-2.0 */
/* Do all ranks of this step find rank 0?  Needs no GPU and no library.
 *
 *     srun --dl=torch -N4 ./spread-check
 */
#include <stdio.h>
#include <stdlib.h>

#include "comm.h"

static int number (const char *name)
{
    const char *text = getenv (name);

    return text ? atoi (text) : -1;
}

int main (void)
{
    struct place p = { number ("SLURM_PROCID"), number ("SLURM_NTASKS"), 0 };
    char got[128] = "";

    if (p.rank < 0 || p.size <= p.rank) {
        fprintf (stderr, "spread-check: start it with srun\n");
        return EXIT_FAILURE;
    }
    if (p.rank == 0)
        snprintf (got, sizeof (got), "hello from rank 0 of %d", p.size);
    if (spread (&p, got, sizeof (got)) < 0)
        return EXIT_FAILURE;
    printf ("rank %d: %s\n", p.rank, got);
    return EXIT_SUCCESS;
}
