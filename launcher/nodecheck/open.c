/* SPDX-License-Identifier: Apache-2.0 */
/* Listen for the ranks of a step, on an allowed port, with a token. */
#include "launcher/nodecheck/open.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum { BACKLOG = 4096 };

static int bind_to (int fd, const void *address, socklen_t len)
{
    int e;

    if (bind (fd, address, len) == 0 && listen (fd, BACKLOG) == 0)
        return fd;
    e = errno;
    close (fd);
    errno = e;
    return -1;
}

int gather_listen (int port, bool reuse)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6,
                                .sin6_port = htons ((uint16_t)port) };
    struct sockaddr_in any4 = { .sin_family = AF_INET,
                                .sin_port = htons ((uint16_t)port) };
    int type = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = socket (AF_INET6, type, 0);
    bool both = fd >= 0;
    int one = reuse, off = 0;

    if (!both && (fd = socket (AF_INET, type, 0)) < 0)
        return -1;
    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof (one));
    if (!both)
        return bind_to (fd, &any4, sizeof (any4));
    setsockopt (fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof (off));
    return bind_to (fd, &any, sizeof (any));
}

int gather_port (int fd)
{
    struct sockaddr_in6 own;
    socklen_t len = sizeof (own);

    return getsockname (fd, (struct sockaddr *)&own, &len) < 0
               ? -1
               : ntohs (own.sin6_port); /* at the same place for IPv4 */
}

/* Those of srun are often the only ones that a firewall lets through. */
static int listen_in (const char *range)
{
    unsigned from, to, first;
    uint32_t chance = 0;
    int fd;

    if (!range || sscanf (range, "%u-%u", &from, &to) != 2 || from < 1
        || to > 65535 || from > to)
        return gather_listen (0, false);
    if (getrandom (&chance, sizeof (chance), 0) < 0)
        chance = (uint32_t)getpid ();
    first = chance % (to - from + 1);
    for (unsigned i = 0; i <= to - from; i++)
        if ((fd = gather_listen ((int)(from + (first + i) % (to - from + 1)),
                                 false))
            >= 0)
            return fd;
    return -1;
}

static int make_token (char *token)
{
    unsigned char bytes[GATHER_TOKEN / 2];

    if (getrandom (bytes, sizeof (bytes), 0) != sizeof (bytes))
        return -1;
    for (size_t i = 0; i < sizeof (bytes); i++)
        snprintf (token + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

int gather_open (struct gather *g,
                 int port,
                 const char *range,
                 struct slurmdl_error *err)
{
    g->listener = port ? gather_listen (port, false) : listen_in (range);
    if (g->listener < 0)
        return errorf (err, "cannot listen: %s", strerror (errno));
    g->port = gather_port (g->listener);
    if (!*g->token && make_token (g->token) < 0) {
        close (g->listener);
        return errorf (err, "getrandom: %s", strerror (errno));
    }
    return 0;
}
