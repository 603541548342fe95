/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections between ranks: establish them within a deadline, and watch them. */
#include "runtime/comm/mesh/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/process_id.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/interface.h"
#include "runtime/comm/net/socket.h"

static uint64_t inode_of (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 ? st.st_ino : 0;
}

static uint64_t path_device (const char *path)
{
    struct stat st;

    return stat (path, &st) == 0 ? st.st_dev : 0;
}

static void find_own_cores (struct mesh_peer_info *c)
{
    cpu_set_t set;
    const unsigned char *bytes = (const void *)&set;

    if (sched_getaffinity (0, sizeof (set), &set) < 0)
        return;
    c->cores = CPU_COUNT (&set);
    c->cores_hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < sizeof (set); i++)
        c->cores_hash = (c->cores_hash ^ bytes[i]) * 1099511628211u;
}

int peer_info_addresses (const struct mesh_peer_info *c)
{
    int n = 0;

    while (n < PEER_ADDRESSES && c->at[n].family)
        n++;
    return n;
}

void peer_info_fill (struct mesh_peer_info *c)
{
    const char *word = getenv ("DL_COMM_NODE");
    const char *host = getenv ("SLURMD_NODENAME");

    memset (c, 0, sizeof (*c));
    if (host && *host)
        snprintf (c->host, sizeof (c->host), "%s", host);
    else if (gethostname (c->host, sizeof (c->host) - 1) < 0)
        snprintf (c->host, sizeof (c->host), "?");
    snprintf (c->word, sizeof (c->word), "%s", word ? word : "");
    c->shm = path_device ("/dev/shm");
    c->netns = inode_of ("/proc/self/ns/net");
    process_id_describe (&c->member);
    if (getrandom (c->token, sizeof (c->token), 0) != sizeof (c->token))
        memset (c->token, 0, sizeof (c->token));
    find_own_cores (c);
    interface_addresses (getenv ("DL_COMM_INTERFACE"), c->at, PEER_ADDRESSES);
}

void peer_info_end (struct mesh_peer_info *c)
{
    c->host[sizeof (c->host) - 1] = '\0';
    c->word[sizeof (c->word) - 1] = '\0';
    c->member.boot[sizeof (c->member.boot) - 1] = '\0';
}

/* Whether two ranks see the same loopback interface. */
static bool peer_info_same_net (const struct mesh_peer_info *a, const struct mesh_peer_info *b)
{
    return *a->member.boot && strcmp (a->member.boot, b->member.boot) == 0 && a->netns == b->netns;
}

bool peer_info_same_node (const struct mesh_peer_info *a, const struct mesh_peer_info *b)
{
    return peer_info_same_net (a, b) && a->shm && a->shm == b->shm
           && strcmp (a->word, b->word) == 0;
}

struct address {
    union interface_socket at;
    socklen_t size;
};

/* Seconds of silence after which a host is suspect.  It then has doubt() seconds to
 * accept a connection.
 */
static double patience (double timeout)
{
    return fmin (timeout, 10);
}

static double doubt (double timeout)
{
    return 0.4 * patience (timeout);
}

/* Do not use TCP_USER_TIMEOUT: it also ends connections to hosts that answer, if a
 * process does not read for that long.  The kernel's own timeout is late, because
 * nobody may be waiting, and those that wait check themselves.
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

static int connect_to_address (const struct address *a, double deadline)
{
    int fd = socket (a->at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int code = 0;
    socklen_t n = sizeof (code);

    if (fd < 0)
        return -1;
    socket_congestion (fd, NULL);
    if (connect (fd, &a->at.any, a->size) == 0)
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

struct handshake dial_handshake (const struct mesh_peer_info *to, const unsigned char *key,
                                 bool plain)
{
    struct handshake h = {
        .service = HANDSHAKE_MESH, .version = DIAL_VERSION, .plain = plain, .confirms = true
    };

    memcpy (h.key, key, sizeof (h.key));
    memcpy (h.token, to->token, sizeof (h.token));
    return h;
}

static bool same_network (const struct interface_address *a, const struct interface_address *b)
{
    int bits = a->prefix;

    if (a->family != b->family || a->prefix != b->prefix)
        return false;
    if (memcmp (a->bytes, b->bytes, (size_t)bits / 8))
        return false;
    return bits % 8 == 0 || (a->bytes[bits / 8] ^ b->bytes[bits / 8]) >> (8 - bits % 8) == 0;
}

static bool is_on_network (const struct mesh_peer_info *self, const struct interface_address *a)
{
    for (int i = 0; i < PEER_ADDRESSES && self->at[i].family; i++)
        if (same_network (&self->at[i], a))
            return true;
    return false;
}

static void set_address (struct address *out, const struct interface_address *a, int port)
{
    out->size = interface_socket (a, port, &out->at);
}

/* List addresses in the order in which to try them: those in our own networks first. */
static int list_addresses (const struct mesh_peer_info *self, const struct mesh_peer_info *to,
                           struct address *out)
{
    struct interface_address loopback = { 4, 8, { 127, 0, 0, 1 } };
    int n = 0;

    if (peer_info_same_net (self, to)) {
        set_address (&out[0], &loopback, to->port);
        return 1;
    }
    for (int near = 1; near >= 0; near--)
        for (int i = 0; i < PEER_ADDRESSES && to->at[i].family; i++)
            if (is_on_network (self, &to->at[i]) == near)
                set_address (&out[n++], &to->at[i], to->port);
    return n;
}

/* State of an attempt to connect to a rank. */
struct dial {
    const struct handshake *handshake;
    const struct mesh_hello *hello;
    double timeout;
    bool reached; /* the host has answered */
    struct net_seal *seal;
};

static int try_one (struct dial *c, const struct address *a, double deadline)
{
    int fd = connect_to_address (a, deadline);
    int saved;

    c->reached |= fd >= 0 || errno == ECONNREFUSED;
    if (fd < 0)
        return -1;
    dial_watch (fd, c->timeout);
    if (handshake_call (fd, c->handshake, c->hello, sizeof (*c->hello), deadline, &c->seal) == 0)
        return fd;
    saved = errno;
    close (fd);
    errno = saved;
    return -1;
}

static int dial_addresses (struct dial *c, const struct address *at, int n, double deadline)
{
    struct timespec nap = { 0, 20000000 };
    double now = monotonic ();
    double gone = now + patience (c->timeout) + doubt (c->timeout);
    bool refused;
    int code = EHOSTUNREACH;

    for (double step = 1; now < deadline; step *= 2) {
        refused = n > 0;
        for (int i = 0; i < n; i++) {
            int fd = try_one (c, &at[i], fmin (deadline, now + step));
            if (fd >= 0)
                return fd;
            code = errno;
            refused = refused && code == ECONNREFUSED;
            now = monotonic ();
        }
        if (refused || n == 0)
            break;
        if (!c->reached && now > gone) {
            code = EHOSTUNREACH;
            break;
        }
        nanosleep (&nap, NULL);
        now = monotonic ();
    }
    errno = code;
    return -1;
}

int dial_rank (const struct dial_caller *caller, const struct mesh_peer_info *to,
               const struct mesh_hello *hello, double deadline, struct net_seal **seal)
{
    struct handshake h = dial_handshake (to, caller->key, caller->plain);
    struct dial c = { &h, hello, caller->timeout, false, NULL };
    struct address at[PEER_ADDRESSES];
    int fd = dial_addresses (&c, at, list_addresses (caller->self, to, at), deadline);

    handshake_forget (h.key, sizeof (h.key));
    *seal = c.seal;
    return fd;
}

/* Whether a kernel answers at that address. */
static bool address_answers (const struct address *a, double deadline)
{
    int fd = connect_to_address (a, deadline);

    if (fd >= 0)
        close (fd);
    return fd >= 0 || errno == ECONNREFUSED;
}

bool dial_reaches (const struct dial_caller *caller, const struct mesh_peer_info *to)
{
    struct address at[PEER_ADDRESSES];
    int n = list_addresses (caller->self, to, at);
    struct timespec nap = { 0, 100000000 };
    double now = monotonic ();
    double deadline = now + doubt (caller->timeout);

    while (now < deadline) {
        for (int i = 0; i < n; i++) {
            if (address_answers (&at[i], fmin (deadline, now + 1)))
                return true;
            now = monotonic ();
        }
        nanosleep (&nap, NULL);
        now = monotonic ();
    }
    return false;
}
