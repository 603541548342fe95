/* SPDX-License-Identifier: Apache-2.0 */
/* Packets about named tensors.  The first byte selects packets to rank 0 or from rank 0. */
#include <pthread.h>

#include "runtime/comm/api/comm.h"
#include "runtime/comm/engine/control.h"
#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/mesh/endpoint.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 4, UNITS = 3 };

static struct mesh_peer_info peers[RANKS];
static long ranks[RANKS] = { 0, 1, 2, 3 };
static struct endpoint endpoint = { .size = RANKS, .peers = peers };
static struct mesh mesh = { .endpoint = &endpoint, .size = RANKS, .world = ranks };
static struct slurmdl_comm channel = { .mesh = &mesh };

static const char *host (const void *arg, long rank)
{
    (void)arg;
    return rank >= 0 && rank < RANKS ? "n1" : (abort (), "");
}

static void open_engine (struct engine *e, long rank)
{
    endpoint.rank = mesh.rank = rank;
    endpoint.pid = getpid ();
    e->channel = e->owner = &channel;
    e->rank = rank;
    e->size = RANKS;
    e->wake = -1;
    e->fusion = 1 << 20;
    e->fresh_tail = &e->fresh;
    e->queue_tail = &e->queue;
    pthread_mutex_init (&e->lock, NULL);
    pthread_cond_init (&e->work, NULL);
    pthread_cond_init (&e->idle, NULL);
}

static void close_engine (struct engine *e)
{
    struct name *n, *same;
    size_t at = 0;

    for (struct engine_batch *b = e->queue, *next; b; b = next) {
        next = b->next;
        for (size_t i = 0; i < b->n; i++)
            tensor_free (b->items[i].t);
        free (b);
    }
    while ((n = map_next (&e->names, &at)))
        for (; n; n = same) {
            same = n->same;
            name_free (n);
        }
    map_free (&e->names);
    map_free (&e->tickets);
    pthread_mutex_destroy (&e->lock);
    pthread_cond_destroy (&e->work);
    pthread_cond_destroy (&e->idle);
}

static void look (struct control *k)
{
    char text[256];
    double age;
    size_t n;
    uint32_t *ids = readiness_full (k->readiness, &n);

    for (size_t i = 0; k->root && i < n; i++)
        coordinator_ready (k->root, ids[i]);
    if (!k->root)
        return;
    coordinator_emit (k->root, k->e->fusion, 4);
    stall_text (k->stall, 1e18, text, sizeof (text), &age);
}

static void take_all (struct control *k, const uint8_t *data, size_t size)
{
    struct connection c = { .fd = -1 };
    struct packet p;

    packet_bytes (&c.in, data, size);
    for (size_t i = 0; connection_take (&c, &p); i++) {
        if ((k->root ? control_up (k, 1 + i % (UNITS - 1), &p) : control_down (k, &p)) < 0)
            break;
        look (k);
    }
    connection_close (&c);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const long units[UNITS] = { 1, 1, 2 };
    static struct engine e;
    struct control k = { .e = &e, .parent.fd = -1 };
    bool root = size > 0 && *data & 1;

    if (size == 0)
        return 0;
    memset (&e, 0, sizeof (e));
    open_engine (&e, root ? 0 : 1);
    k.readiness = readiness_create (UNITS, units);
    k.root = root ? coordinator_create (RANKS, host, &e, &k.down) : NULL;
    k.stall = root ? stall_create (RANKS, host, &e) : NULL;
    take_all (&k, data + 1, size - 1);
    readiness_destroy (k.readiness);
    coordinator_destroy (k.root);
    stall_destroy (k.stall);
    packet_free (&k.up);
    packet_free (&k.down);
    map_free (&k.ids);
    close_engine (&e);
    return 0;
}
