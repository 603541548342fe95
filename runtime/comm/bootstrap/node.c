/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a node meet through an abstract socket and join rank 0 together. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/rank/layout.h"

/* Ranks that are later, or cannot see this node's sockets (in a container with its
 * own network), connect to rank 0 themselves.
 */
enum { NODE_S = 5 };

static double node_deadline (const struct boot_place *p)
{
    double s = p->timeout / 4;

    return monotonic () + (s < NODE_S ? s : NODE_S);
}

long boot_node_leader (const struct boot_place *p)
{
    const struct rank_layout *l = p->layout;

    if (!l || l->node_of[p->rank] == l->node_of[0])
        return -1;
    for (long r = 1; r < l->ranks; r++)
        if (l->node_of[r] == l->node_of[p->rank])
            return r;
    return -1;
}

/* A name that nobody else can guess, because all users see the names in use and may
 * take others.  It includes the rank's node, because in tests several nodes may be
 * one machine.
 */
static socklen_t node_address (const struct boot_place *p, struct sockaddr_un *a)
{
    unsigned char name[HANDSHAKE_KEY];
    char text[SECRET_DIGITS + 1];
    int n;

    memset (a, 0, sizeof (*a));
    a->sun_family = AF_UNIX;
    handshake_derive (p->key, "name", name, sizeof (name));
    secret_print (name, text);
    n = snprintf (a->sun_path + 1, sizeof (a->sun_path) - 1, "slurmdl-boot-%s-%d-%d", text, p->port,
                  (int)p->layout->node_of[p->rank]);
    return (socklen_t)(offsetof (struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int listen_on_node (const struct boot_place *p)
{
    struct sockaddr_un a;
    socklen_t n = node_address (p, &a);
    int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0 && bind (fd, (struct sockaddr *)&a, n) == 0 && listen (fd, 4096) == 0)
        return fd;
    if (fd >= 0)
        close (fd);
    return -1;
}

int boot_node_gather (struct boot_tree *t, const struct boot_place *p)
{
    const struct rank_layout *l = p->layout;
    struct boot_accept m;
    struct listen_sockets at = { .n = 1, .fd = { listen_on_node (p) } };
    int rv = -1;

    if (at.fd[0] < 0)
        return -1;
    if (boot_accept_open (&m, p, &at) == 0) {
        for (long r = p->rank + 1; r < l->ranks; r++)
            if (l->node_of[r] == l->node_of[p->rank])
                boot_accept_expect (&m, r);
        boot_accept_run (&m, node_deadline (p));
        rv = boot_accept_end (&m, t);
    }
    boot_accept_close (&m);
    return rv;
}

int boot_node_connect (const struct boot_place *p)
{
    double deadline = node_deadline (p);
    struct timespec pause = { 0, 10000000 };
    struct sockaddr_un a;
    socklen_t n = node_address (p, &a);
    int fd = -1;

    while (fd < 0 && monotonic () < deadline) {
        fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
            return -1;
        if (connect (fd, (struct sockaddr *)&a, n) == 0)
            break;
        close (fd);
        fd = -1;
        nanosleep (&pause, NULL);
    }
    if (fd >= 0 && !listener_is_mine (fd)) {
        close (fd);
        fd = -1;
    }
    return fd;
}
