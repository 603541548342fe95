/* SPDX-License-Identifier: Apache-2.0 */
/* Packets over a stream socket: four bytes of length, then the packet, each
 * followed by its tag.
 */
#include "runtime/comm/engine/control.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH = 4, PACKET_MAX = 1 << 30, CHUNK = 1 << 16 };

static void put_record (struct connection *w, const void *data, size_t n)
{
    unsigned char tag[SEAL_TAG];

    seal_make (w->seal, data, n, tag);
    packet_bytes (&w->out, data, n);
    packet_bytes (&w->out, tag, seal_size (w->seal));
}

static void put_packet (struct connection *w, const void *data, uint32_t n)
{
    put_record (w, &n, LENGTH);
    put_record (w, data, n);
}

static void put_early (struct connection *w)
{
    uint32_t n;

    for (size_t at = 0; at < w->early.n; at += LENGTH + n) {
        memcpy (&n, w->early.data + at, LENGTH);
        put_packet (w, w->early.data + at + LENGTH, n);
    }
    packet_free (&w->early);
}

int connection_open (struct connection *w, int fd, struct net_seal *seal)
{
    int flags = fcntl (fd, F_GETFL);

    if (!w->expected)
        memset (w, 0, sizeof (*w));
    w->expected = false;
    w->fd = fd;
    w->seal = seal;
    put_early (w);
    return flags < 0 ? -1 : fcntl (fd, F_SETFL, flags | O_NONBLOCK);
}

void connection_expect (struct connection *w)
{
    memset (w, 0, sizeof (*w));
    w->fd = -1;
    w->expected = true;
}

void connection_close (struct connection *w)
{
    if (w->fd >= 0)
        close (w->fd);
    w->fd = -1;
    seal_destroy (w->seal);
    w->seal = NULL;
    packet_free (&w->early);
    packet_free (&w->in);
    packet_free (&w->out);
}

int connection_flush (struct connection *w)
{
    while (w->out.at < w->out.n) {
        ssize_t n = send (w->fd, w->out.data + w->out.at, w->out.n - w->out.at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -1;
        w->out.at += (size_t)n;
    }
    packet_clear (&w->out);
    return 0;
}

int connection_send (struct connection *w, const struct packet *p)
{
    uint32_t n = (uint32_t)p->n;

    if ((w->fd < 0 && !w->expected) || w->out.bad || p->n > PACKET_MAX) {
        errno = ENOMEM;
        return -1;
    }
    if (!w->expected) {
        put_packet (w, p->data, n);
        return w->out.bad ? -1 : connection_flush (w);
    }
    packet_bytes (&w->early, &n, LENGTH);
    packet_bytes (&w->early, p->data, n);
    return w->early.bad ? -1 : 0;
}

bool connection_waits (const struct connection *w)
{
    return w->fd >= 0 && w->out.at < w->out.n;
}

/* Drop the bytes that were taken. */
static void drop_taken_bytes (struct packet *p)
{
    memmove (p->data, p->data + p->at, p->n - p->at);
    p->n -= p->at;
    p->at = 0;
}

int connection_read (struct connection *w)
{
    unsigned char chunk[CHUNK];
    ssize_t n;

    if (w->in.at)
        drop_taken_bytes (&w->in);
    do {
        n = recv (w->fd, chunk, sizeof (chunk), 0);
        if (n > 0)
            packet_bytes (&w->in, chunk, (size_t)n);
    } while (n == CHUNK || (n < 0 && errno == EINTR));
    if (n > 0 || (n < 0 && errno == EAGAIN))
        return w->in.bad ? -1 : 0;
    if (n == 0)
        errno = ECONNRESET;
    return -1;
}

/* Take the next 'n' bytes if they have arrived with a valid tag, or return NULL. */
static const void *take_record (struct connection *w, size_t n)
{
    size_t size = seal_size (w->seal);
    const unsigned char *data = w->in.data + w->in.at;

    if (w->altered || w->in.n - w->in.at < n + size)
        return NULL;
    w->altered = seal_check (w->seal, data, n, data + n) < 0;
    if (w->altered)
        return NULL;
    w->in.at += n + size;
    return data;
}

bool connection_take (struct connection *w, struct packet *p)
{
    const void *data;

    if (!w->begun) {
        if (!(data = take_record (w, LENGTH)))
            return false;
        memcpy (&w->length, data, LENGTH);
        w->begun = true;
    }
    if (!(data = take_record (w, w->length)))
        return false;
    *p = (struct packet){ .data = (unsigned char *)data, .n = w->length };
    w->begun = false;
    return true;
}
