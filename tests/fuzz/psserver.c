/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a worker that a parameter server knows, after its handshake. */
#include <fcntl.h>

#include "runtime/ps/server.h"
#include "tests/fuzz/fuzz.h"

/* A table's size is the user's to choose, and its memory may be large. */
enum { WORKERS = 2, ELEMENTS_MAX = 1 << 20 };

static bool is_modest (const uint8_t *data, size_t size)
{
    struct ps_header h;
    struct ps_spec spec;

    for (size_t at = 0; size - at >= sizeof (h); at += sizeof (h) + h.bytes) {
        memcpy (&h, data + at, sizeof (h));
        if (h.bytes > size - at - sizeof (h))
            return h.bytes < ELEMENTS_MAX;
        if (h.kind != PS_DECLARE || h.bytes != sizeof (spec))
            continue;
        memcpy (&spec, data + at + sizeof (h), sizeof (spec));
        if (spec.n > ELEMENTS_MAX || spec.row > 4096)
            return false;
    }
    return true;
}

static void open_server (struct ps_server *s, struct slurmdl_ps *ps)
{
    static struct ps_worker workers[WORKERS];

    memset (workers, 0, sizeof (workers));
    ps->role = PS_SERVER;
    ps->servers = 1;
    ps->workers = WORKERS;
    ps->timeout = ps->grace = 10;
    ps->stop = -1;
    s->ps = ps;
    s->entry = &ps->entry;
    s->workers = workers;
    s->saved = -1;
    workers[0].life = workers[1].life = PS_LIVE;
}

static void add_peer (struct ps_server *s, int fd)
{
    s->peers = calloc (1, sizeof (*s->peers));
    s->npeers = 1;
    s->peers->fd = fd;
    fcntl (fd, F_SETFL, O_NONBLOCK);
    s->peers->known = true;
    s->peers->timeout = 10;
}

static void close_server (struct ps_server *s)
{
    while (s->npeers > 0)
        pspeer_drop (s, 0);
    for (size_t i = 0; i < s->ntables; i++)
        ps_table_destroy (s->tables[i]);
    free (s->tables);
    free (s->peers);
}

/* The first byte is the mode; with a table there is more to do. */
int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static struct slurmdl_ps ps;
    struct ps_server s = { 0 };
    struct slurmdl_error why = { "" };

    if (size == 0 || !is_modest (data + 1, size - 1))
        return 0;
    memset (&ps, 0, sizeof (ps));
    ps.mode = (enum slurmdl_ps_mode) (*data % 3);
    open_server (&s, &ps);
    add_peer (&s, fuzz_socket (data + 1, size - 1));
    for (int i = 0; i < 64 && s.npeers > 0; i++) {
        if (pspeer_serve (&s, s.peers) < 0)
            break;
        if (s.peers->held) {
            psapply_explain (&s, s.peers, &why);
            s.peers->held = false;
            s.peers->in_got = 0;
        }
    }
    close_server (&s);
    return 0;
}
