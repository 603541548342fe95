/* SPDX-License-Identifier: Apache-2.0 */
/* Open and close meshes, their channels and their parts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/mesh/channel.h"

static void links_init (struct mesh *m)
{
    for (long r = 0; r < m->size; r++) {
        atomic_init (&m->links[r].in, -1);
        atomic_init (&m->links[r].out, -1);
        atomic_init (&m->links[r].asked, 0);
    }
    atomic_init (&m->waits, -1);
    m->event = -1;
}

static void release_mesh (struct mesh *m)
{
    if (m->event >= 0)
        close (m->event);
    free (m->buffer);
    free (m->record);
    for (long r = 0; m->links && r < m->size; r++) {
        seal_destroy (m->links[r].in_seal);
        seal_destroy (m->links[r].out_seal);
    }
    free (m->links);
    free (m->world);
    free (m->node);
    free (m);
}

/* Number the nodes in the order of their first ranks. */
static void find_nodes (struct mesh *m)
{
    const struct mesh_peer_info *peers = m->endpoint->peers;

    for (long r = 0; r < m->size; r++) {
        const struct mesh_peer_info *c = &peers[m->world[r]];
        m->node[r] = -1;
        /* ranks of a node are mostly consecutive */
        for (long q = r - 1; q >= 0 && m->node[r] < 0; q--)
            if (peer_info_same_node (&peers[m->world[q]], c))
                m->node[r] = m->node[q];
        if (m->node[r] < 0)
            m->node[r] = m->nodes++;
    }
}

/* Whether there are enough cores for the ranks that share them. */
static bool has_cores (const struct mesh *m)
{
    const struct mesh_peer_info *peers = m->endpoint->peers;
    const struct mesh_peer_info *own = &peers[m->endpoint->rank];
    long sharers = 0;

    for (long r = 0; r < m->endpoint->size; r++)
        sharers += strcmp (peers[r].member.boot, own->member.boot) == 0
                   && peers[r].cores_hash == own->cores_hash;
    return sharers <= own->cores;
}

static struct mesh *make_mesh (struct endpoint *h, uint64_t channel, const long *world, long size,
                               struct slurmdl_error *err)
{
    struct mesh *m = calloc (1, sizeof (*m));

    if (!m) {
        errorf (err, "out of memory");
        return NULL;
    }
    m->root = m;
    m->endpoint = h;
    m->channel = channel;
    m->size = size;
    m->rank = m->suspect = m->failed = -1;
    m->timeout = h->timeout;
    m->event = -1;
    m->world = calloc ((size_t)size, sizeof (*m->world));
    m->node = calloc ((size_t)size, sizeof (*m->node));
    m->links = calloc ((size_t)size, sizeof (*m->links));
    if (!m->world || !m->node || !m->links) {
        errorf (err, "out of memory");
        release_mesh (m);
        return NULL;
    }
    links_init (m);
    for (long r = 0; r < size; r++) {
        m->world[r] = world ? world[r] : r;
        if (m->world[r] == h->rank)
            m->rank = r;
    }
    if ((m->event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        errorf (err, "eventfd: %s", strerror (errno));
        release_mesh (m);
        return NULL;
    }
    find_nodes (m);
    m->may_spin = has_cores (m);
    return m;
}

struct mesh *mesh_open (struct boot *b, struct slurmdl_error *err)
{
    struct endpoint *h = endpoint_open (b, err);
    struct mesh *m = h ? make_mesh (h, 0, NULL, h->size, err) : NULL;

    if (m)
        endpoint_enter (h, m);
    else if (h)
        endpoint_close (h);
    return m;
}

static struct mesh *derive_mesh (struct mesh *m, const long *ranks, long n, unsigned channel,
                                 struct slurmdl_error *err)
{
    /* derive IDs for parts of parts without a common counter */
    uint64_t id = (m->channel + channel) * UINT64_C (0x9e3779b97f4a7c15) + 1;
    struct mesh *part = make_mesh (m->endpoint, id, ranks, n, err);

    if (!part)
        return NULL;
    part->timeout = m->timeout;
    if (channel >= MESH_HELPER)
        part->root = m->root;
    endpoint_use (m->endpoint);
    endpoint_enter (m->endpoint, part);
    return part;
}

struct mesh *mesh_channel (struct mesh *m, unsigned channel, struct slurmdl_error *err)
{
    return derive_mesh (m, m->world, m->size, channel, err);
}

struct mesh *mesh_subset (struct mesh *m, const long *ranks, long n, unsigned channel,
                          struct slurmdl_error *err)
{
    long *world = calloc ((size_t)n, sizeof (*world));
    struct mesh *part;

    if (!world) {
        errorf (err, "out of memory");
        return NULL;
    }
    for (long i = 0; i < n; i++)
        world[i] = m->world[ranks[i]];
    part = derive_mesh (m, world, n, channel, err);
    free (world);
    return part;
}

static void send_goodbye (struct mesh *m)
{
    struct mesh_head h = { .magic = HEAD_BYE };
    unsigned char tag[SEAL_TAG];
    struct iovec v[2] = { { &h, sizeof (h) }, { tag, 0 } };
    struct msghdr msg = { .msg_iov = v, .msg_iovlen = 2 };

    for (long r = 0; r < m->size; r++) {
        struct net_seal *seal = m->links[r].out_seal;
        if (m->links[r].out < 0 || atomic_load (&m->aborted))
            continue;
        seal_make (seal, &h, sizeof (h), tag);
        v[1].iov_len = seal_size (seal);
        if (sendmsg (m->links[r].out, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            errno = 0;
    }
}

void mesh_close (struct mesh *m)
{
    int saved = errno;

    if (!m)
        return;
    endpoint_leave (m->endpoint, m);
    if (!endpoint_is_foreign (m->endpoint)) {
        send_goodbye (m);
        mesh_close_links (m);
    }
    for (struct mesh_pending *p = m->sockets, *next; p; p = next) {
        next = p->next;
        seal_destroy (p->seal);
        free (p);
    }
    endpoint_close (m->endpoint);
    release_mesh (m);
    errno = saved;
}
