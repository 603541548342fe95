/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of connected ranks to rank 0, to another rank, or to a rank that waits for its place.
 * The first byte selects one; handshake.c fuzzes the handshake before them.
 */
#include "runtime/comm/bootstrap/tree.c"

#include "tests/fuzz/fuzz.h"

enum { RANKS = 4, BYTES = 24 };

static void gather (bool root, int fd)
{
    struct boot_peer *child = calloc (1, sizeof (*child));
    struct boot_tree t = {
        .rank = root ? 0 : 1, .size = RANKS, .timeout = 0.01, .parent.stream.fd = -1
    };
    struct boot_peer *from = root ? child : &t.parent;
    char mine[BYTES] = "mine";
    char all[RANKS * BYTES];
    struct slurmdl_error err = { "" };

    boot_peer_init (child, -1, NULL);
    boot_peer_init (&t.parent, -1, NULL);
    boot_peer_init (from, fd, NULL);
    from->nranks = RANKS - 1;
    t.children = child;
    t.nchildren = root;
    if (boot_tree_allgather (&t, mine, BYTES, all, &err) < 0)
        fuzz_failed (&err);
    t.broken = false;
    t.nchildren = 1;
    boot_tree_close (&t, true);
}

static void welcome (int fd)
{
    struct boot_place p = { .size = RANKS };
    struct boot_welcome w;
    struct net_stream s;

    net_stream_init (&s, fd, NULL);
    while (net_stream_read (&s, 4096) == 1) {
        volatile size_t n;
        if (check_welcome (&p, &s, &w) == 0)
            n = strlen (w.host) + strlen (w.parent_host) + strlen (w.parent_from);
        n = strlen (boot_tree_reason (&s));
        (void)n;
        net_stream_next (&s);
    }
    net_stream_close (&s);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    int fd;

    if (size == 0)
        return 0;
    fd = fuzz_socket (data + 1, size - 1);
    if (*data % 3 == 2)
        welcome (fd);
    else
        gather (*data % 3 == 0, fd);
    return 0;
}
