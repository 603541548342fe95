/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that reduces all the time: steady GO STOP. It prints "met" once the
 * ranks have met, waits for the file GO, prints "reduced" after the first
 * all-reduce, and continues until the file STOP exists. Then it prints how long
 * the slowest all-reduce took.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "runtime/slurmdl_comm.h"

static double now (void)
{
    struct timespec t;

    clock_gettime (CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main (int argc, char **argv)
{
    struct slurmdl_error e = { "" };
    struct slurmdl_comm *c = slurmdl_comm_open (NULL, &e);
    double worst = 0;
    int64_t stop = 0;
    long calls = 0;

    if (!c || argc < 3)
        errx (1, "%s", e.text);
    printf ("met\n");
    fflush (stdout);
    while (access (argv[1], F_OK) < 0)
        usleep (10000);
    for (; !stop; calls++) {
        double began = now ();
        stop = access (argv[2], F_OK) == 0;
        if (slurmdl_allreduce (c, &stop, &stop, 1, SLURMDL_I64, SLURMDL_MAX, &e) < 0)
            errx (1, "%s", e.text);
        if (calls == 0) {
            printf ("reduced\n");
            fflush (stdout);
        }
        if (now () - began > worst)
            worst = now () - began;
        usleep (1000);
    }
    printf ("%ld calls, the longest %.1f ms\n", calls, worst);
    slurmdl_comm_close (c, NULL);
    return 0;
}
