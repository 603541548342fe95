/* SPDX-License-Identifier: Apache-2.0 */
/* Check that nodes reach each other over TCP, and how fast. */
#include "launcher/node/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/comm/net/listener.h"

enum { BLOCK = 1 << 20, CONNECT_S = 2, SEND_S = 1 };

/* Count the bytes until the peer stops sending, and send it the sum.  The bytes are not
 * authenticated, because only their number matters.
 */
static void count_received (int fd, struct net_seal *seal, char *block)
{
    unsigned long long sum = 0;
    ssize_t n;

    while ((n = read (fd, block, BLOCK)) > 0)
        sum += (unsigned long long)n;
    memcpy (block, &sum, sizeof (sum));
    seal_make (seal, &sum, sizeof (sum), block + sizeof (sum));
    if (n == 0)
        send (fd, block, sizeof (sum) + seal_size (seal), MSG_NOSIGNAL);
}

/* Serve one peer after the other. */
static void count_all (struct listener *l, char *block)
{
    struct timeval limit = { .tv_sec = CONNECT_S + SEND_S };
    struct listener_arrival a;

    while (listener_take (l, &a)) {
        fcntl (a.fd, F_SETFL, 0);
        setsockopt (a.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof (limit));
        count_received (a.fd, a.seal, block);
        seal_destroy (a.seal);
        close (a.fd);
        free (a.body);
    }
}

/* Serve rates, and close connections to the master's port: peers only try whether they can connect.
 */
static void serve_peers (struct listener *rates, const struct listen_sockets *master)
{
    char *block = xmalloc (BLOCK);
    struct pollfd *p;
    int fd;

    while ((p = listener_poll (rates, (size_t)master->n))) {
        nfds_t first = listener_fds (rates);
        for (int i = 0; i < master->n; i++)
            p[first + (nfds_t)i] = (struct pollfd){ .fd = master->fd[i], .events = POLLIN };
        poll (p, first + (nfds_t)master->n, rates->n ? 1000 : -1);
        for (int i = 0; i < master->n; i++)
            if (p[first + (nfds_t)i].revents && (fd = accept (master->fd[i], NULL, NULL)) >= 0)
                close (fd);
        listener_serve (rates);
        count_all (rates, block);
    }
}

/* The port that PyTorch's rank 0 or torchrun's first node will listen on.  0: neither is used. */
static int master_port (void)
{
    const char *name = getenv ("MASTER_PORT") ? "MASTER_PORT" : "PET_MASTER_PORT";
    long long n = environment_number (name, 0);

    return n > 0 && n < 65536 ? (int)n : 0;
}

static void listen_as_master (struct listen_sockets *s, json_t *findings)
{
    int port = master_port ();
    char why[WHY_TEXT];

    if (!port || listen_open (s, NULL, port) == 0)
        return;
    snprintf (why, sizeof (why), "cannot listen on MASTER_PORT %d on rank 0's node: %s", port,
              strerror (errno));
    json_array_append_new (findings, finding_json (SEVERITY_STOP, why));
}

static struct handshake handshake_of (const unsigned char *key)
{
    struct handshake h = { .service = HANDSHAKE_RATES };

    memcpy (h.key, key, sizeof (h.key));
    return h;
}

pid_t peers_serve (const unsigned char *key, bool is_master, int *port, json_t *findings)
{
    struct listener rates = { .handshake = handshake_of (key) };
    struct listen_sockets master = { 0 };
    pid_t pid = -1;

    *port = listen_open (&rates.at, NULL, 0) < 0 ? 0 : rates.at.port;
    if (is_master)
        listen_as_master (&master, findings);
    if ((rates.at.n || master.n) && (pid = subprocess_fork (SIGKILL)) == 0) {
        serve_peers (&rates, &master);
        _exit (0);
    }
    listener_close (&rates);
    listen_close (&master);
    return pid;
}

void peers_end (pid_t pid)
{
    if (pid <= 0)
        return;
    kill (pid, SIGKILL);
    waitpid (pid, NULL, 0);
}

/* SO_SNDTIMEO also limits connect(). */
static int connect_within_limit (const char *host, const char *port)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct timeval limit = { .tv_sec = CONNECT_S };
    /* close with a reset: TIME_WAIT would keep the peer's port, MASTER_PORT, busy */
    struct linger none = { .l_onoff = 1, .l_linger = 0 };
    struct addrinfo *list = NULL;
    int fd = -1, e = EHOSTUNREACH;

    if (getaddrinfo (host, port, &hints, &list) != 0)
        list = NULL;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        fd = socket (a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof (limit));
        setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof (limit));
        setsockopt (fd, SOL_SOCKET, SO_LINGER, &none, sizeof (none));
        if (fd >= 0 && connect (fd, a->ai_addr, a->ai_addrlen) < 0) {
            e = errno == EINPROGRESS ? ETIMEDOUT : errno;
            close (fd);
            fd = -1;
        }
    }
    if (list)
        freeaddrinfo (list);
    errno = e;
    return fd;
}

void check_master (const struct check_place *p)
{
    const char *host = getenv ("MASTER_ADDR") ?: getenv ("PET_MASTER_ADDR");
    char port[16];
    int fd;

    if (!host || !*host || !master_port ())
        return;
    snprintf (port, sizeof (port), "%d", master_port ());
    check_stage (p, "%s port %s", host, port);
    fd = connect_within_limit (host, port);
    if (fd < 0)
        check_finding (p, SEVERITY_STOP, "cannot connect to MASTER_ADDR %s, MASTER_PORT %s: %s",
                       host, port, strerror (errno));
    else
        close (fd);
}

/* Send as fast as possible for a second.  Returns GB/s, or -1. */
static double send_for_a_while (int fd, const unsigned char *key)
{
    struct handshake with = handshake_of (key);
    double start = monotonic (), took;
    char *block = xcalloc (1, BLOCK);
    char answer[sizeof (unsigned long long) + SEAL_TAG];
    unsigned long long sum;
    struct net_seal *seal = NULL;
    ssize_t n = 1;

    if (handshake_call (fd, &with, "", 0, start + CONNECT_S, &seal) < 0)
        n = -1;
    start = monotonic ();
    while (n > 0 && monotonic () - start < SEND_S)
        n = send (fd, block, BLOCK, MSG_NOSIGNAL);
    free (block);
    shutdown (fd, SHUT_WR);
    if (n > 0)
        n = recv (fd, answer, sizeof (answer), MSG_WAITALL);
    took = monotonic () - start;
    if (n == sizeof (answer) && seal_check (seal, answer, sizeof (sum), answer + sizeof (sum)) == 0)
        memcpy (&sum, answer, sizeof (sum));
    else
        n = -1;
    seal_destroy (seal);
    if (n < 0)
        return -1;
    return (double)sum / took / 1e9;
}

void check_next (const struct check_place *p)
{
    const char *host = json_string_value (json_object_get (p->next, "host")) ?: "";
    const char *address = json_string_value (json_object_get (p->next, "address")) ?: "";
    long port = json_integer_value (json_object_get (p->next, "port"));
    char text[16];
    double rate;
    int fd;

    if (!p->next || !*address || port < 1)
        return;
    snprintf (text, sizeof (text), "%ld", port);
    check_stage (p, "%s (%s)", host, address);
    if ((fd = connect_within_limit (address, text)) < 0) {
        check_finding (p, SEVERITY_WARN, "network: cannot connect to %s (%s): %s", host, address,
                       strerror (errno));
        return;
    }
    if (p->level == LEVEL_FULL && (rate = send_for_a_while (fd, p->key)) >= 0)
        check_fact (p, "rates", "network", json_real (rate));
    close (fd);
}
