/* SPDX-License-Identifier: Apache-2.0 */
/* Find the rank that all others wait for in the end. */
#include <errno.h>
#include <stdio.h>

#include "runtime/comm/mesh/channel.h"

/* 'peer' waits for nobody, or for one that is not among us. */
static void say_absent (const struct mesh *m, long peer, const struct mesh_report *r, char *text,
                        size_t size)
{
    unsigned long ours = atomic_load (&m->calls);

    snprintf (text, size,
              "rank %ld on %s did not come within %g s: it has called %lu "
              "collectives, rank %ld %lu",
              mesh_world_rank (m, peer), mesh_host (m, peer), m->timeout, (unsigned long)r->calls,
              m->endpoint->rank, ours);
}

static void say_silent (const struct mesh *m, long peer, int code, char *text, size_t size)
{
    if (code == ECONNREFUSED)
        snprintf (text, size, "rank %ld on %s is lost", peer, mesh_host (m, peer));
    else
        snprintf (text, size,
                  "rank %ld on %s did not come within %g s: its process is "
                  "stopped, or its host does not answer",
                  mesh_world_rank (m, peer), mesh_host (m, peer), m->timeout);
}

long mesh_find_culprit (struct mesh *part, long peer, char *text, size_t size)
{
    const struct mesh *m = part->root;
    struct mesh_report r = { .waits = -1 };
    long who = mesh_root_rank (part, peer);
    long next = who;

    for (long hops = 0; next >= 0 && next != m->rank && hops < m->size; hops++) {
        who = next;
        if (mesh_query (m, who, &r) < 0) {
            say_silent (m, who, errno, text, size);
            return m->world[who];
        }
        next = r.waits < 0 ? -1 : mesh_rank_of (m, r.waits);
    }
    say_absent (m, who, &r, text, size);
    return m->world[who];
}
