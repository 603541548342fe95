/* SPDX-License-Identifier: Apache-2.0 */
/* The ports on which the ranks of a step listen. */
#include "runtime/rank/rank_environment.h"

#include <stdlib.h>

enum { PORTS = 12000, PORT_MIN = 10000, PORT_MAX = 65535 };

/* The port at index 'n' of a list such as "41004-41006,41009".  Returns 0 if the
 * list is too short or malformed.
 */
static int reserved_port (const char *list, long n)
{
    while (list && *list) {
        char *stop;
        long lo = strtol (list, &stop, 10);
        long hi = lo;
        if (*stop == '-')
            hi = strtol (stop + 1, &stop, 10);
        if (lo < 1 || hi < lo || hi > PORT_MAX || (*stop && *stop != ','))
            return 0;
        if (n <= hi - lo)
            return (int)(lo + n);
        n -= hi - lo + 1;
        list = stop + (*stop == ',');
    }
    return 0;
}

/* Spread the ports of jobs with similar numbers. */
static uint64_t mix_job (uint32_t job)
{
    uint64_t z = (uint64_t)job + 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct rank_ports rank_environment_ports (const char *reserved, uint32_t job, uint32_t step,
                                          int ephemeral, long tasks)
{
    int low = ephemeral - PORTS < PORT_MIN ? PORT_MIN : ephemeral - PORTS;
    uint64_t turn = mix_job (job) % PORTS + step;
    int three = low + PORTS / 2 + (int)(turn % (PORTS / 6)) * 3;
    int blocks = PORTS / 2 / RANK_TASK_PORTS;
    struct rank_ports p = { reserved_port (reserved, 0), reserved_port (reserved, 1),
                            reserved_port (reserved, 2), reserved_port (reserved, 1) };

    /* there are no more ports than this; it also avoids an overflow */
    if (tasks > PORT_MAX)
        tasks = PORT_MAX;
    if (!p.master)
        p.master = three;
    if (!p.second)
        p.second = three + 1;
    if (!p.third)
        p.third = three + 2;
    if (!p.tasks || reserved_port (reserved, tasks) != p.tasks + tasks - 1)
        p.tasks =
            tasks > RANK_TASK_PORTS ? 0 : low + (int)(turn % (uint64_t)blocks) * RANK_TASK_PORTS;
    return p;
}
