/* SPDX-License-Identifier: Apache-2.0 */
/* A message from another rank after the handshake.  The first byte gives the expected length, and
 * whether the data are reduced as they arrive.
 */
#include <pthread.h>
#include <sys/eventfd.h>

#include "runtime/comm/mesh/channel.h"
#include "runtime/comm/mesh/endpoint.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 2, BYTES = 64, GRAIN = 4 };

static struct mesh_peer_info peers[RANKS] = { { .host = "n1" }, { .host = "n2" } };
static long ranks[RANKS] = { 0, 1 };
static long nodes[RANKS] = { 0, 1 };

static void take (void *arg, size_t offset, const void *data, size_t n)
{
    char *to = arg;

    memcpy (to + offset, data, n);
}

static void receive (struct mesh *m, bool reduce, size_t n)
{
    char in[BYTES];
    struct mesh_sendrecv t = { .to = -1, .from = 1 };
    struct slurmdl_error err = { "" };

    if (reduce) {
        t.reduce = take;
        t.arg = in;
        t.reduce_n = n - n % GRAIN;
    } else {
        t.in[0].iov_base = in;
        t.in[0].iov_len = n;
    }
    if (mesh_sendrecv (m, &t, &err) < 0)
        fuzz_failed (&err);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct endpoint h = { .size = RANKS, .peers = peers };
    uint8_t whole[sizeof (struct mesh_head) + BYTES] = { 0 };
    size_t n = size > 0 ? *data & (BYTES - 1) : 0;
    bool reduce = size > 0 && *data & BYTES;
    struct mesh_link links[RANKS] = { { -1, -1, NULL, NULL, 0 }, { -1, -1, NULL, NULL, 0 } };
    struct mesh m = { .endpoint = &h,
                      .size = RANKS,
                      .world = ranks,
                      .node = nodes,
                      .nodes = 2,
                      .links = links,
                      .timeout = 0.01,
                      .failed = 1,
                      .suspect = -1 };

    if (size < 1 || size - 1 > sizeof (whole))
        return 0;
    /* Always send the full size.  At the end of a stream, the mesh would spend time to find out why
     * the rank is gone.
     */
    memcpy (whole, data + 1, size - 1);
    m.root = h.meshes = &m;
    h.pid = getpid ();
    pthread_mutex_init (&h.mutex, NULL);
    m.event = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    links[1].in = fuzz_socket (whole, sizeof (whole));
    receive (&m, reduce, n);
    close (links[1].in);
    close (m.event);
    free (m.buffer);
    free (m.record);
    pthread_mutex_destroy (&h.mutex);
    return 0;
}
