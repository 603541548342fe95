/* SPDX-License-Identifier: Apache-2.0 */
/* TCP sockets with deadlines. */
#include "runtime/comm/net/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/address.h"

int socket_left (double deadline)
{
    double left = deadline - monotonic ();

    if (left <= 0)
        return 0;
    return left > 1000 ? 1000000 : (int)(left * 1000) + 1;
}

int socket_keep (int fd, int rv)
{
    int saved = errno;

    if (rv == 0)
        return fd;
    close (fd);
    errno = saved;
    return -1;
}

static int control_by (int fd, const char *name)
{
    return setsockopt (fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen (name));
}

/* bbr paces its sending by the rate it has seen before.  If ranks alternate between
 * computing and exchanging, that takes longer than the copies.
 */
static int set_congestion (int fd, const char *wanted)
{
    char now[16] = "";
    socklen_t n = sizeof (now);

    if (wanted && *wanted)
        return control_by (fd, wanted);
    if (getsockopt (fd, IPPROTO_TCP, TCP_CONGESTION, now, &n) == 0 && strncmp (now, "bbr", 3) == 0
        && control_by (fd, "cubic") < 0)
        control_by (fd, "reno");
    return 0;
}

int socket_congestion (int fd, struct slurmdl_error *err)
{
    const char *wanted = getenv ("DL_COMM_CONGESTION");

    if (set_congestion (fd, wanted) < 0)
        return errorf (err, "DL_COMM_CONGESTION=%.20s: %s", wanted, strerror (errno));
    return 0;
}

int socket_new (int family)
{
    int fd = socket (family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd >= 0)
        socket_congestion (fd, NULL);
    return fd;
}

void socket_no_delay (int fd)
{
    int one = 1;

    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof (one));
    setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof (one));
}

int socket_wait (int fd, short events, double deadline)
{
    struct pollfd p = { .fd = fd, .events = events };
    int n;

    do
        n = poll (&p, 1, socket_left (deadline));
    while ((n < 0 && errno == EINTR) || (n == 0 && monotonic () < deadline));
    if (n == 0)
        errno = ETIMEDOUT;
    return n == 1 ? 0 : -1;
}

/* Whether a socket is connected to itself: if nobody listens on a local port yet,
 * the kernel may choose that port as the source.
 */
static bool is_to_itself (int fd)
{
    struct sockaddr_storage a, b;
    socklen_t na = sizeof (a), nb = sizeof (b);

    memset (&a, 0, sizeof (a));
    memset (&b, 0, sizeof (b));
    return getsockname (fd, (struct sockaddr *)&a, &na) == 0
           && getpeername (fd, (struct sockaddr *)&b, &nb) == 0 && na == nb && !memcmp (&a, &b, na);
}

static int finish_connect (int fd, double deadline)
{
    socklen_t n = sizeof (int);
    int error = 0;

    if (socket_wait (fd, POLLOUT, deadline) < 0)
        return -1;
    if (getsockopt (fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0)
        return -1;
    if (!error && is_to_itself (fd))
        error = ECONNREFUSED;
    if (error)
        errno = error;
    return error ? -1 : 0;
}

static int connect_socket (const struct addrinfo *a, double deadline)
{
    int fd = socket_new (a->ai_family);
    int rv;

    if (fd < 0)
        return -1;
    socket_no_delay (fd);
    rv = connect (fd, a->ai_addr, a->ai_addrlen);
    if (rv == 0 || errno == EINPROGRESS || errno == EINTR)
        rv = finish_connect (fd, deadline);
    return socket_keep (fd, rv);
}

static int connect_to_host (const char *host, int port, double deadline)
{
    struct addrinfo *list = address_look_up (address_name (host), port, 0);
    int saved;
    int fd = -1;

    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = connect_socket (a, deadline);
    saved = errno;
    if (list)
        freeaddrinfo (list);
    errno = saved;
    return fd;
}

int socket_connect (const char *hosts, int port, double deadline)
{
    char host[NI_MAXHOST];
    int fd = -1;
    size_t n;

    errno = EHOSTUNREACH;
    for (const char *h = hosts; fd < 0 && *h; h += n + (h[n] == ',')) {
        n = strcspn (h, ",");
        if (n == 0 || n >= sizeof (host))
            continue;
        memcpy (host, h, n);
        host[n] = '\0';
        fd = connect_to_host (host, port, deadline);
    }
    return fd;
}

void socket_tune (int fd, int idle, int interval, int probes)
{
    int on = 1;

    setsockopt (fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof (on));
    setsockopt (fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof (on));
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof (idle));
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof (interval));
    setsockopt (fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof (probes));
}

/* Handle the result 'k' of a call.  Returns 0 to go on, if there is more to transfer. */
static int wait_after_call (int fd, ssize_t k, short events, double deadline)
{
    if (k >= 0 || errno == EINTR)
        return 0;
    return errno == EAGAIN ? socket_wait (fd, events, deadline) : -1;
}

/* Remove the first 'k' bytes from the pieces. */
static void skip_bytes (struct msghdr *h, size_t k)
{
    while (h->msg_iovlen > 0 && k >= h->msg_iov->iov_len) {
        k -= h->msg_iov->iov_len;
        h->msg_iov++;
        h->msg_iovlen--;
    }
    if (k > 0) {
        h->msg_iov->iov_base = (char *)h->msg_iov->iov_base + k;
        h->msg_iov->iov_len -= k;
    }
}

int socket_sendv (int fd, struct iovec *v, int n, double deadline)
{
    struct msghdr h = { .msg_iov = v, .msg_iovlen = (size_t)n };

    skip_bytes (&h, 0);
    while (h.msg_iovlen > 0) {
        ssize_t k = sendmsg (fd, &h, MSG_NOSIGNAL);
        if (wait_after_call (fd, k, POLLOUT, deadline) < 0)
            return -1;
        if (k > 0)
            skip_bytes (&h, (size_t)k);
    }
    return 0;
}

int socket_send (int fd, const void *data, size_t n, double deadline)
{
    struct iovec v = { (void *)data, n };

    return socket_sendv (fd, &v, 1, deadline);
}

int socket_recv (int fd, void *data, size_t n, double deadline)
{
    char *p = data;

    while (n > 0) {
        ssize_t k = recv (fd, p, n, 0);
        if (k == 0) {
            errno = ECONNRESET;
            return -1;
        }
        if (wait_after_call (fd, k, POLLIN, deadline) < 0)
            return -1;
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
    return 0;
}
