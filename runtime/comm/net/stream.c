/* SPDX-License-Identifier: Apache-2.0 */
/* Whole messages over a socket, read as they arrive. */
#include "runtime/comm/net/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/comm/net/socket.h"

enum { NET_STREAM_MAGIC = 0x646c6331 }; /* "dlc1" */

void net_stream_init (struct net_stream *w, int fd, struct net_seal *seal)
{
    memset (w, 0, sizeof (*w));
    w->fd = fd;
    w->seal = seal;
}

void net_stream_close (struct net_stream *w)
{
    if (w->fd >= 0)
        close (w->fd);
    free (w->body);
    seal_destroy (w->seal);
    net_stream_init (w, -1, NULL);
}

static enum stream_read take_stream_bytes (struct net_stream *w, char *to, size_t n)
{
    while (w->got < n) {
        ssize_t k = recv (w->fd, to + w->got, n - w->got, MSG_DONTWAIT);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && errno == EAGAIN)
            return STREAM_PARTIAL;
        if (k <= 0) {
            errno = ECONNRESET;
            return STREAM_FAILED;
        }
        w->got += (size_t)k;
    }
    return STREAM_WHOLE;
}

static int make_stream_room (struct net_stream *w, size_t most)
{
    size_t need;
    char *body;

    if (w->head.magic != NET_STREAM_MAGIC || w->head.length > most) {
        errno = EPROTO;
        return -1;
    }
    need = (size_t)w->head.length + SEAL_TAG + 1;
    if (w->room >= need)
        return 0;
    if (!(body = realloc (w->body, need)))
        return -1;
    w->body = body;
    w->room = need;
    return 0;
}

static enum stream_read take_head (struct net_stream *w, size_t most)
{
    size_t n = sizeof (w->head);
    enum stream_read got = take_stream_bytes (w, w->begin, n + seal_size (w->seal));

    if (got != STREAM_WHOLE)
        return got;
    if (seal_check (w->seal, w->begin, n, w->begin + n) < 0)
        return STREAM_FAILED;
    memcpy (&w->head, w->begin, n);
    if (make_stream_room (w, most) < 0)
        return STREAM_FAILED;
    w->begun = true;
    w->got = 0;
    return STREAM_WHOLE;
}

static enum stream_read take_record_body (struct net_stream *w)
{
    size_t n = (size_t)w->head.length;
    enum stream_read got =
        n ? take_stream_bytes (w, w->body, n + seal_size (w->seal)) : STREAM_WHOLE;

    if (got != STREAM_WHOLE)
        return got;
    if (n > 0 && seal_check (w->seal, w->body, n, w->body + n) < 0)
        return STREAM_FAILED;
    w->body[n] = '\0';
    return STREAM_WHOLE;
}

enum stream_read net_stream_read (struct net_stream *w, size_t most)
{
    enum stream_read got = w->begun ? STREAM_WHOLE : take_head (w, most);

    return got == STREAM_WHOLE ? take_record_body (w) : got;
}

void net_stream_next (struct net_stream *w)
{
    w->got = 0;
    w->begun = false;
}

enum stream_read net_stream_wait (struct net_stream *w, size_t most, double deadline)
{
    enum stream_read got;

    while ((got = net_stream_read (w, most)) == STREAM_PARTIAL)
        if (socket_wait (w->fd, POLLIN, deadline) < 0)
            return STREAM_FAILED;
    return got;
}

int net_stream_send (struct net_stream *w, uint32_t kind, const void *body, size_t n,
                     double deadline)
{
    struct net_stream_head head = { NET_STREAM_MAGIC, kind, n };
    unsigned char tags[2][SEAL_TAG];
    size_t size = seal_size (w->seal);
    struct iovec v[4] = {
        { &head, sizeof (head) }, { tags[0], size }, { (void *)body, n }, { tags[1], n ? size : 0 }
    };

    seal_make (w->seal, &head, sizeof (head), tags[0]);
    if (n > 0)
        seal_make (w->seal, body, n, tags[1]);
    return socket_sendv (w->fd, v, 4, deadline);
}
