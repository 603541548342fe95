/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of the parameter server, and which server has a parameter. */
#include "runtime/ps/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/address.h"
#include "runtime/comm/net/socket.h"

/* The finaliser of MurmurHash3. */
uint64_t ps_mix (uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
    return x ^ x >> 33;
}

/* FNV-1a, 64 bits. */
uint64_t ps_key (const char *name)
{
    uint64_t h = 0xcbf29ce484222325ULL;

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001b3ULL;
    return h;
}

void ps_shard (uint64_t key,
               uint64_t n,
               long server,
               long servers,
               uint64_t *lo,
               uint64_t *count)
{
    uint64_t all = (uint64_t)servers;
    uint64_t s = ((uint64_t)server + ps_mix (key) % all) % all;
    uint64_t blocks = n / PS_BLOCK + (n % PS_BLOCK > 0);
    uint64_t each = blocks / all;
    uint64_t more = blocks % all;
    uint64_t hi;

    *lo = (each * s + (s < more ? s : more)) * PS_BLOCK;
    hi = *lo + (each + (s < more)) * PS_BLOCK;
    *count = hi <= n ? hi - *lo : *lo < n ? n - *lo : 0;
}

static int announced (const struct ps_entry *e, struct interface_address *list)
{
    int n = 0;

    for (const char *a; n < PS_ADDRESSES && *(a = e->address[n]); n++) {
        list[n] =
            (struct interface_address){ .family = strchr (a, ':') ? 6 : 4 };
        inet_pton (list[n].family == 6 ? AF_INET6 : AF_INET, a, list[n].bytes);
    }
    return n;
}

int pswire_listen (const char *address,
                   struct ps_entry *e,
                   struct listen_sockets *s,
                   struct slurmdl_error *err)
{
    const char *host = address && *address ? address : NULL;
    struct interface_address list[PS_ADDRESSES];

    if (address_numbers (host, e->address, PS_ADDRESSES) < 0)
        return errorf (err,
                       "no address of %.80s: %s",
                       host ? host : "this machine",
                       strerror (errno));
    if (listen_open_range (s, host ? list : NULL, announced (e, list), err) < 0)
        return -1;
    e->port = (uint32_t)s->port;
    return 0;
}

void pswire_tune (int fd, double grace)
{
    int seconds = grace < 3 ? 1 : (int)(grace / 3);

    socket_tune (fd, seconds, seconds, 3);
}

/* TCP_USER_TIMEOUT would also end a connection whose peer only does not read
 * for a while; and when something was last sent says nothing, as what is sent
 * again counts.
 */
bool pswire_is_dead (int fd, double grace, struct ps_pulse *pulse)
{
    double now = monotonic ();
    bool slept = now - pulse->looked > PS_LOOK_MAX;
    struct tcp_info i;
    socklen_t len = sizeof (i);

    if (now - pulse->looked < 0.3
        || getsockopt (fd, IPPROTO_TCP, TCP_INFO, &i, &len) < 0)
        return false;
    pulse->looked = now;
    if (slept || i.tcpi_unacked == 0
        || now - i.tcpi_last_ack_recv / 1000.0 > pulse->alive)
        pulse->alive = now;
    return now - pulse->alive > grace;
}

int pswire_connect (const struct ps_entry *e)
{
    int fd = -1;

    errno = EADDRNOTAVAIL;
    for (int i = 0; fd < 0 && i < PS_ADDRESSES && *e->address[i]; i++)
        fd = socket_connect (e->address[i], (int)e->port, monotonic () + 2);
    return fd;
}
