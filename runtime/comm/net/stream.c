/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a socket, as they come. */
#include "runtime/comm/net/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/comm/net/socket.h"

enum { NET_STREAM_MAGIC = 0x646c6331 }; /* "dlc1" */

void net_stream_init (struct net_stream *w, int fd)
{
    memset (w, 0, sizeof (*w));
    w->fd = fd;
}

void net_stream_close (struct net_stream *w)
{
    if (w->fd >= 0)
        close (w->fd);
    free (w->body);
    net_stream_init (w, -1);
}

/* Returns 1: all 'n' bytes from 'from' on are there. */
static int take (struct net_stream *w, char *to, size_t from, size_t n)
{
    while (w->got < from + n) {
        size_t at = w->got - from;
        ssize_t k = recv (w->fd, to + at, n - at, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            return 0;
        if (k <= 0) {
            errno = ECONNRESET;
            return -1;
        }
        w->got += (size_t)k;
    }
    return 1;
}

static int make_room (struct net_stream *w, size_t most)
{
    size_t need;
    char *body;

    if (w->head.magic != NET_STREAM_MAGIC || w->head.length > most) {
        errno = EPROTO;
        return -1;
    }
    need = (size_t)w->head.length + 1;
    if (w->room >= need)
        return 0;
    if (!(body = realloc (w->body, need)))
        return -1;
    w->body = body;
    w->room = need;
    return 0;
}

int net_stream_read (struct net_stream *w, size_t most)
{
    int rv = take (w, (char *)&w->head, 0, sizeof (w->head));

    if (rv <= 0)
        return rv;
    if (make_room (w, most) < 0)
        return -1;
    rv = take (w, w->body, sizeof (w->head), (size_t)w->head.length);
    if (rv == 1)
        w->body[w->head.length] = '\0';
    return rv;
}

void net_stream_next (struct net_stream *w)
{
    w->got = 0;
}

int net_stream_wait (struct net_stream *w, size_t most, double deadline)
{
    int rv;

    while ((rv = net_stream_read (w, most)) == 0)
        if (socket_wait (w->fd, POLLIN, deadline) < 0)
            return -1;
    return rv;
}

int net_stream_send (struct net_stream *w,
                     uint32_t kind,
                     const void *body,
                     size_t n,
                     double deadline)
{
    struct net_stream_head head = { NET_STREAM_MAGIC, kind, n };

    return socket_send (w->fd, &head, sizeof (head), deadline) < 0
                   || (n && socket_send (w->fd, body, n, deadline) < 0)
               ? -1
               : 0;
}
