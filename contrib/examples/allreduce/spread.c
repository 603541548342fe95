/* SPDX-License-Identifier: Apache-2.0 */
/* Give every rank a few bytes of rank 0's, by the library's communicator. */
#include <stdio.h>

#include "comm.h"
#include "slurmdl_comm.h"

int spread (const struct place *p, void *data, size_t n)
{
    struct slurmdl_comm_options o = { .timeout = 60, .backend = "native" };
    struct slurmdl_error err;
    struct slurmdl_comm *c = slurmdl_comm_open (&o, &err);
    int rv = c ? slurmdl_broadcast (c, data, n, 0, &err) : -1;

    if (rv < 0)
        fprintf (stderr, "allreduce: rank %d: %s\n", p->rank, err.text);
    slurmdl_comm_close (c, NULL);
    return rv;
}
