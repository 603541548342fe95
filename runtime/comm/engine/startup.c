/* SPDX-License-Identifier: Apache-2.0 */
/* Connect the control threads, each with its rank's first named tensor. */
#include "runtime/comm/engine/control.h"

#include <errno.h>

static const double LOOK_SECONDS = 1; /* whether a rank has gone meanwhile */

/* A child that has been told something knows that we are here. */
static int welcome (struct control *k, size_t i, int fd, struct net_seal *seal)
{
    struct packet p = { NULL };
    int rv;

    packet_number (&p, DOWN_HERE);
    rv = connection_open (&k->children[i], fd, seal);
    if (rv == 0)
        rv = connection_send (&k->children[i], &p);
    packet_free (&p);
    k->absent--;
    return rv;
}

static int give_up (struct control *k, const struct slurmdl_error *err)
{
    engine_fail (k->e, errno, err->text);
    return -1;
}

static int late (struct control *k, long rank)
{
    struct slurmdl_error err = { "" };

    mesh_timed_out (k->e->channel->mesh, rank, &err);
    return give_up (k, &err);
}

int control_meet (struct control *k, double now)
{
    bool over = now - k->begun > k->e->timeout;

    for (size_t i = 0; k->absent && i < k->tree.n; i++) {
        struct slurmdl_error err = { "" };
        long rank = k->tree.children[i];
        struct net_seal *seal = NULL;
        int fd;
        if (!k->children[i].expected)
            continue;
        fd = mesh_socket_now (k->e->channel->mesh, rank, &seal, &err);
        if (fd >= 0 ? welcome (k, i, fd, seal) < 0 : errno != EAGAIN)
            return give_up (k, &err);
        if (fd < 0 && over)
            return late (k, rank);
    }
    return !k->root && !k->heard && over ? late (k, k->tree.parent) : 0;
}

double control_meeting (const struct control *k)
{
    return k->absent || (!k->root && !k->heard) ? LOOK_SECONDS : -1;
}
