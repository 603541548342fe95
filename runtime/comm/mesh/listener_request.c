/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the listener of another rank. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/net/socket.h"

static struct dial_caller caller_of (const struct mesh *m)
{
    return (struct dial_caller){ mesh_self (m), m->endpoint->key, m->endpoint->plain, m->timeout };
}

int mesh_call (const struct mesh *m, long peer, enum dial_kind kind, double seconds,
               struct net_seal **seal)
{
    struct mesh_hello w = { .kind = kind,
                            .from = m->endpoint->rank,
                            .to = m->world[peer],
                            .code = m->code,
                            .unreachable = atomic_load (&m->endpoint->unreachable),
                            .channel = m->channel };
    struct dial_caller caller = caller_of (m);

    if (kind == DIAL_ABORT)
        snprintf (w.text, sizeof (w.text), "%s", m->why);
    return dial_rank (&caller, mesh_peer (m, peer), &w, monotonic () + seconds, seal);
}

/* Asked again only after a while: a process that is stopped keeps what asks. */
bool mesh_is_unreachable (struct mesh *m, long peer, int fd)
{
    struct dial_caller caller = caller_of (m);
    long now = (long)monotonic ();
    long before;

    if (fd < 0 || !dial_is_silent (fd, m->timeout))
        return false;
    before = atomic_exchange (&m->links[peer].asked, now);
    if ((before && now - before < 10) || dial_reaches (&caller, mesh_peer (m, peer)))
        return false;
    mesh_found_unreachable (m, m->world[peer]);
    return true;
}

long mesh_unreachable (const struct mesh *m)
{
    return atomic_load (&m->endpoint->unreachable);
}

void mesh_set_waits (struct mesh *m, long peer)
{
    atomic_store (&m->root->waits, peer < 0 ? -1 : m->world[peer]);
}

double mesh_answer_seconds (const struct mesh *m)
{
    double t = m->timeout / 4;

    return t < 0.5 ? 0.5 : t > 2 ? 2 : t;
}

int mesh_query (const struct mesh *m, long peer, struct mesh_report *r)
{
    char answer[sizeof (*r) + SEAL_TAG];
    struct net_seal *seal = NULL;
    int fd = mesh_call (m, peer, DIAL_QUERY, mesh_answer_seconds (m), &seal);
    int rv;

    if (fd < 0)
        return -1;
    rv = socket_recv (fd, answer, sizeof (*r) + seal_size (seal),
                      monotonic () + mesh_answer_seconds (m));
    if (rv == 0)
        rv = seal_check (seal, answer, sizeof (*r), answer + sizeof (*r));
    if (rv == 0)
        memcpy (r, answer, sizeof (*r));
    seal_destroy (seal);
    close (fd);
    return rv;
}
