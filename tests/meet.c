/* SPDX-License-Identifier: Apache-2.0 */
/* Meet as the step says, and add the ranks up: "R of S by BOOTSTRAP: SUM". */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/clock.h"
#include "runtime/slurmdl_comm.h"

int main (int argc, char **argv)
{
    struct slurmdl_error e = { "" };
    double began = monotonic ();
    struct slurmdl_comm *c = slurmdl_comm_open (NULL, &e);
    double took = monotonic () - began;
    int64_t sum;

    if (!c)
        errx (1, "%s", e.text);
    sum = slurmdl_comm_rank (c) + 1;
    if (slurmdl_allreduce (c, &sum, &sum, 1, SLURMDL_I64, SLURMDL_SUM, &e) < 0)
        errx (1, "%s", e.text);
    printf ("%ld of %ld by %s: %ld\n",
            slurmdl_comm_rank (c),
            slurmdl_comm_size (c),
            slurmdl_comm_bootstrap (c),
            (long)sum);
    if (argc > 1 && slurmdl_comm_rank (c) == 0)
        fprintf (stderr, "%.3f s\n", took);
    slurmdl_comm_close (c);
    (void)argv;
    return 0;
}
