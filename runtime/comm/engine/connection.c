/* SPDX-License-Identifier: Apache-2.0 */
/* Packets over a stream socket: four bytes of length, then the packet. */
#include "runtime/comm/engine/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH = 4, PACKET_MAX = 1 << 30, CHUNK = 1 << 16 };

int connection_open (struct connection *w, int fd)
{
    int flags = fcntl (fd, F_GETFL);

    if (!w->expected)
        memset (w, 0, sizeof (*w));
    w->expected = false;
    w->fd = fd;
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
    packet_free (&w->in);
    packet_free (&w->out);
}

int connection_flush (struct connection *w)
{
    while (w->out.at < w->out.n) {
        ssize_t n = send (
            w->fd, w->out.data + w->out.at, w->out.n - w->out.at, MSG_NOSIGNAL);
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

    if (w->fd < 0 && !w->expected)
        return -1;
    packet_bytes (&w->out, &n, LENGTH);
    packet_bytes (&w->out, p->data, p->n);
    if (w->out.bad || p->n > PACKET_MAX) {
        errno = ENOMEM;
        return -1;
    }
    return w->expected ? 0 : connection_flush (w);
}

bool connection_waits (const struct connection *w)
{
    return w->fd >= 0 && w->out.at < w->out.n;
}

/* What was taken makes room. */
static void shift (struct packet *p)
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
        shift (&w->in);
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

bool connection_take (struct connection *w, struct packet *p)
{
    uint32_t n;

    if (w->in.n - w->in.at < LENGTH)
        return false;
    memcpy (&n, w->in.data + w->in.at, LENGTH);
    if (w->in.n - w->in.at - LENGTH < n)
        return false;
    *p = (struct packet){ .data = w->in.data + w->in.at + LENGTH, .n = n };
    w->in.at += LENGTH + n;
    return true;
}
