/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks: made within a time, and watched. */
#include "runtime/comm/mesh/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/socket.h"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t size_of (const union address *a)
{
    return a->any.sa_family == AF_INET ? sizeof (a->v4) : sizeof (a->v6);
}

static int bind_range (struct slurmdl_error *err)
{
    const char *range = getenv ("DL_COMM_PORTS");
    int first = 0;
    int last = 0;
    int fd = -1;

    if (range && *range
        && (sscanf (range, "%d-%d", &first, &last) != 2 || first < 1
            || last < first || last > 65535)) {
        errno = EINVAL;
        return errorf (err, "DL_COMM_PORTS=%s: not FIRST-LAST", range);
    }
    for (int i = 0; fd < 0 && i <= last - first; i++)
        fd = socket_listen (
            NULL, first ? first + (i + getpid ()) % (last - first + 1) : 0);
    if (fd < 0)
        errorf (err, "no port to listen at: %s", strerror (errno));
    return fd;
}

int dial_listen (int *port, struct slurmdl_error *err)
{
    int fd = bind_range (err);

    if (fd < 0)
        return -1;
    if (socket_congestion (fd, err) < 0) {
        close (fd);
        return -1;
    }
    *port = socket_port (fd);
    return fd;
}

/* Seconds of silence, and those in which a connection must be made then. */
static double patience (double timeout)
{
    return fmin (timeout, 10);
}

static double doubt (double timeout)
{
    return 0.4 * patience (timeout);
}

/* Not TCP_USER_TIMEOUT: it ends connections to hosts that answer, too, when a
 * process does not read for so long.  The kernel's own end comes late: nobody
 * may be waiting, and those that wait look themselves.
 */
void dial_watch (int fd, double timeout)
{
    int step = 1 + (int)patience (timeout) / 6;

    socket_tune (fd, 2 * step, step, 16);
}

bool dial_is_silent (int fd, double timeout)
{
    struct tcp_info i;
    socklen_t n = sizeof (i);

    if (getsockopt (fd, IPPROTO_TCP, TCP_INFO, &i, &n) < 0)
        return false;
    return (i.tcpi_unacked > 0 || i.tcpi_probes > 0)
           && i.tcpi_last_ack_recv > patience (timeout) * 1000;
}

static int connect_to (const union address *a, double deadline)
{
    int fd = socket (
        a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int code = 0;
    socklen_t n = sizeof (code);

    if (fd < 0)
        return -1;
    socket_congestion (fd, NULL);
    if (connect (fd, &a->any, size_of (a)) == 0)
        return fd;
    if (errno != EINPROGRESS || socket_wait (fd, POLLOUT, deadline) < 0)
        code = errno;
    else if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &code, &n) < 0)
        code = errno;
    if (code == 0)
        return fd;
    close (fd);
    errno = code;
    return -1;
}

/* 0; EPROTO: the other one is not who we meant. */
static int introduce (int fd,
                      const struct peer_info *self,
                      const struct hello *hello,
                      const char *text,
                      double deadline)
{
    uint64_t answer[2];
    char go = 1;

    if (socket_send (fd, hello, sizeof (*hello), deadline) < 0
        || socket_send (fd, text, hello->text, deadline) < 0
        || socket_recv (fd, answer, sizeof (answer), deadline) < 0)
        return -1;
    if (memcmp (answer, self->token, sizeof (answer))) {
        errno = EPROTO;
        return -1;
    }
    return dial_needs_go (hello) ? socket_send (fd, &go, 1, deadline) : 0;
}

static bool same_network (const struct peer_address *a,
                          const struct peer_address *b)
{
    int bits = a->prefix;

    if (a->family != b->family || a->prefix != b->prefix)
        return false;
    if (memcmp (a->bytes, b->bytes, (size_t)bits / 8))
        return false;
    return bits % 8 == 0
           || (a->bytes[bits / 8] ^ b->bytes[bits / 8]) >> (8 - bits % 8) == 0;
}

static bool is_near (const struct peer_info *self, const struct peer_address *a)
{
    for (int i = 0; i < PEER_ADDRESSES && self->at[i].family; i++)
        if (same_network (&self->at[i], a))
            return true;
    return false;
}

static void
set_address (union address *out, const struct peer_address *a, int port)
{
    memset (out, 0, sizeof (*out));
    if (a->family == 4) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons ((uint16_t)port);
        memcpy (&out->v4.sin_addr, a->bytes, 4);
    } else {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons ((uint16_t)port);
        memcpy (&out->v6.sin6_addr, a->bytes, 16);
    }
}

/* In the order in which they are tried: those of our own networks first. */
static int addresses (const struct peer_info *self,
                      const struct peer_info *to,
                      union address *out)
{
    struct peer_address loopback = { 4, 8, { 127, 0, 0, 1 } };
    int n = 0;

    if (peer_info_same_net (self, to)) {
        set_address (&out[0], &loopback, to->port);
        return 1;
    }
    for (int near = 1; near >= 0; near--)
        for (int i = 0; i < PEER_ADDRESSES && to->at[i].family; i++)
            if (is_near (self, &to->at[i]) == near)
                set_address (&out[n++], &to->at[i], to->port);
    return n;
}

/* What is tried at each address of a rank. */
struct call {
    const struct peer_info *self;
    const struct hello *hello;
    const char *text;
    double timeout;
    bool reached; /* its host has answered */
};

static int try_one (struct call *c, const union address *a, double deadline)
{
    int fd = connect_to (a, deadline);
    int saved;

    c->reached |= fd >= 0 || errno == ECONNREFUSED;
    if (fd < 0)
        return -1;
    dial_watch (fd, c->timeout);
    if (introduce (fd, c->self, c->hello, c->text, deadline) == 0)
        return fd;
    saved = errno;
    close (fd);
    errno = saved;
    return -1;
}

int dial_rank (const struct peer_info *self,
               const struct peer_info *to,
               struct hello *hello,
               const char *text,
               double deadline,
               double timeout)
{
    union address at[PEER_ADDRESSES];
    int n = addresses (self, to, at);
    struct timespec nap = { 0, 20000000 };
    struct call c = { self, hello, text, timeout, false };
    double now = monotonic ();
    double gone = now + patience (timeout) + doubt (timeout);
    bool refused;
    int code = EHOSTUNREACH;

    hello->magic = DIAL_MAGIC;
    hello->text = text ? (uint32_t)strlen (text) : 0;
    memcpy (hello->token, to->token, sizeof (hello->token));
    for (double step = 1; now < deadline; step *= 2) {
        refused = n > 0;
        for (int i = 0; i < n; i++) {
            int fd = try_one (&c, &at[i], fmin (deadline, now + step));
            if (fd >= 0)
                return fd;
            code = errno;
            refused = refused && code == ECONNREFUSED;
            now = monotonic ();
        }
        if (refused || n == 0)
            break;
        if (!c.reached && now > gone) {
            code = EHOSTUNREACH;
            break;
        }
        nanosleep (&nap, NULL);
        now = monotonic ();
    }
    errno = code;
    return -1;
}

/* Whether the kernel answers at that address. */
static bool answers (const union address *a, double deadline)
{
    int fd = connect_to (a, deadline);

    if (fd >= 0)
        close (fd);
    return fd >= 0 || errno == ECONNREFUSED;
}

bool dial_reaches (const struct peer_info *self,
                   const struct peer_info *to,
                   double timeout)
{
    union address at[PEER_ADDRESSES];
    int n = addresses (self, to, at);
    struct timespec nap = { 0, 100000000 };
    double now = monotonic ();
    double deadline = now + doubt (timeout);

    while (now < deadline) {
        for (int i = 0; i < n; i++) {
            if (answers (&at[i], fmin (deadline, now + 1)))
                return true;
            now = monotonic ();
        }
        nanosleep (&nap, NULL);
        now = monotonic ();
    }
    return false;
}
