/* SPDX-License-Identifier: Apache-2.0 */
/* Meet as the step describes, and compute: meet [seconds | all | parts]. */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "tests/runtime/comm/collect.h"

/* The tests of tests/runtime/comm/comm.c, which runs them with the native back
 * end only.
 */
static int everything (struct slurmdl_comm *c)
{
    return collect_types (c, NULL) || collect_sizes (c, NULL) || collect_rounding (c, NULL)
           || collect_parts (c, NULL) || collect_threads (c, NULL);
}

/* Run each collective with some ten calls of MPI.  everything() would make
 * thousands, and each of them needs all ranks on a CPU at once.
 */
static int in_parts (struct slurmdl_comm *c)
{
    size_t most = 5000;

    return collect_sizes (c, &most);
}

/* Prints "RANK of SIZE by BOOTSTRAP over BACKEND: SUM", the sum of 1 to SIZE. */
int main (int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
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
    if ((!strcmp (what, "all") && everything (c)) || (!strcmp (what, "parts") && in_parts (c)))
        errx (1, "rank %ld: results are wrong", slurmdl_comm_rank (c));
    printf ("%ld of %ld by %s over %s: %ld\n", slurmdl_comm_rank (c), slurmdl_comm_size (c),
            slurmdl_comm_bootstrap (c), slurmdl_comm_backend (c), (long)sum);
    if (!strcmp (what, "seconds") && slurmdl_comm_rank (c) == 0)
        printf ("met in %.3f s\n", took);
    slurmdl_comm_close (c, NULL);
    return 0;
}
