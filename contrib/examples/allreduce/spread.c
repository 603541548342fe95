/* SPDX-License-Identifier: Apache-2.0 */
/* Give every rank a few bytes of rank 0's over TCP. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "comm.h"

/* A rank connects and sends its number; rank 0 answers with the bytes. */
enum { WAIT_MS = 60000 };

static long long now_ms (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void limit (int fd)
{
    struct timeval wait = { WAIT_MS / 1000, 0 };

    setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof (wait));
    setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof (wait));
}

static int
transfer (int fd, void *data, size_t n, ssize_t (*io) (int, void *, size_t))
{
    char *p = data;

    while (n > 0) {
        ssize_t k = io (fd, p, n);
        if (k <= 0)
            return -1;
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

static ssize_t send_some (int fd, void *data, size_t n)
{
    return send (fd, data, n, MSG_NOSIGNAL);
}

static ssize_t read_some (int fd, void *data, size_t n)
{
    return recv (fd, data, n, 0);
}

static int open_socket (const char *host,
                        const char *port,
                        int (*use) (int, const struct sockaddr *, socklen_t))
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_family = AF_INET,
                              .ai_flags = host ? 0 : AI_PASSIVE };
    struct addrinfo *list;
    int one = 1;
    int fd;

    if (getaddrinfo (host, port, &hints, &list) != 0)
        return -1;
    fd = socket (list->ai_family, list->ai_socktype | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
        if (use (fd, list->ai_addr, list->ai_addrlen) < 0) {
            close (fd);
            fd = -1;
        }
    }
    freeaddrinfo (list);
    return fd;
}

static void say_missing (const char *here, int size)
{
    for (int r = 1; r < size; r++)
        if (!here[r])
            fprintf (stderr, "allreduce: rank %d did not come\n", r);
}

static int accept_one (int listener, long long until)
{
    struct pollfd p = { .fd = listener, .events = POLLIN };
    long long left = until - now_ms ();

    if (left <= 0 || poll (&p, 1, (int)left) != 1)
        return -1;
    return accept4 (listener, NULL, NULL, SOCK_CLOEXEC);
}

static int serve_all (
    int listener, const struct place *p, void *data, size_t n, char *here)
{
    long long until = now_ms () + WAIT_MS;
    int left = p->size - 1;
    int32_t rank;
    int fd;

    while (left > 0 && (fd = accept_one (listener, until)) >= 0) {
        limit (fd);
        /* whoever else connects to this port is sent away */
        if (transfer (fd, &rank, sizeof (rank), read_some) == 0 && rank > 0
            && rank < p->size && !here[rank]
            && transfer (fd, data, n, send_some) == 0) {
            here[rank] = 1;
            left--;
        }
        close (fd);
    }
    return left == 0 ? 0 : -1;
}

static int serve (const struct place *p, const char *port, void *data, size_t n)
{
    int listener = open_socket (NULL, port, bind);
    char *here = calloc ((size_t)p->size, 1);
    int rv = -1;

    if (listener < 0 || !here || listen (listener, 1024) < 0)
        fprintf (
            stderr, "allreduce: rank 0: port %s: %s\n", port, strerror (errno));
    else if ((rv = serve_all (listener, p, data, n, here)) < 0)
        say_missing (here, p->size);
    if (listener >= 0)
        close (listener);
    free (here);
    return rv;
}

static int fetch (const struct place *p,
                  const char *host,
                  const char *port,
                  void *data,
                  size_t n)
{
    long long until = now_ms () + WAIT_MS;
    int32_t rank = p->rank;
    int rv = -1;

    while (rv < 0 && now_ms () < until) {
        int fd = open_socket (host, port, connect);
        if (fd < 0) {
            usleep (100000); /* rank 0 may not listen yet */
            continue;
        }
        limit (fd);
        if (transfer (fd, &rank, sizeof (rank), send_some) == 0)
            rv = transfer (fd, data, n, read_some);
        close (fd);
    }
    if (rv < 0)
        fprintf (stderr,
                 "allreduce: rank %d: no answer of %s:%s\n",
                 p->rank,
                 host,
                 port);
    return rv;
}

int spread (const struct place *p, void *data, size_t n)
{
    const char *host = getenv ("MASTER_ADDR");
    const char *port = getenv ("MASTER_PORT");

#if WITH_PMIX
    int rv = spread_pmix (p, data, n);
    if (rv <= 0)
        return rv;
#endif
    if (!host || !port) {
        fprintf (stderr,
                 "allreduce: MASTER_ADDR and MASTER_PORT are not set: start "
                 "with srun --dl=torch\n");
        return -1;
    }
    return p->rank == 0 ? serve (p, port, data, n)
                        : fetch (p, host, port, data, n);
}
