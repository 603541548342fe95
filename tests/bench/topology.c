/* SPDX-License-Identifier: Apache-2.0 */
/* topology [ROOT [CPUS]]: time to read a machine and to place one of 8 ranks.
 */
#include <sched.h>
#include <stdio.h>

#include "runtime/host/place.h"
#include "tests/bench/bench.h"

enum { RUNS = 100 };

static void print (const char *what, double s[static RUNS])
{
    double middle = 1e6 * median (s, RUNS);

    printf ("%s: median %.0f us, least %.0f, greatest %.0f\n",
            what,
            middle,
            1e6 * s[0],
            1e6 * s[RUNS - 1]);
}

int main (int argc, char **argv)
{
    const char *root = argc > 1 ? argv[1] : "/";
    struct place_request r = { .placement = PLACE_SOCKET, .local_size = 8 };
    int visible[GPUS_MAX];
    double opened[RUNS];
    double placed[RUNS];
    struct place p;

    if (argc > 2)
        cpus_parse (argv[2], &r.cpus);
    else
        sched_getaffinity (0, sizeof (r.cpus), (cpu_set_t *)&r.cpus);
    r.visible = visible;
    for (int i = 0; i < RUNS; i++) {
        double t0 = now ();
        struct topology *t = topology_open (root, &r.cpus);
        double t1 = now ();
        if (!t)
            return 1;
        for (r.devices = 0; r.devices < t->gpus; r.devices++)
            visible[r.devices] = r.devices;
        place_rank (t, &r, &p);
        placed[i] = now () - t1;
        opened[i] = t1 - t0;
        if (i == 0)
            printf ("%d GPUs, %d network devices, %d NUMA nodes, %d CPUs\n",
                    t->gpus,
                    t->nics,
                    t->nodes,
                    cpus_count (&r.cpus));
        topology_close (t);
    }
    print ("read", opened);
    print ("place", placed);
    return 0;
}
