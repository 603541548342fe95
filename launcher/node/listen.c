/* SPDX-License-Identifier: Apache-2.0 */
/* Listen for the ranks of a step, on an allowed port. */
#include "launcher/node/listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/base/error.h"

enum { PROTOCOL = 2 };

/* Those of srun are often the only ones that a firewall lets through. */
static int listen_in (struct listen_sockets *s, const char *range)
{
    unsigned from, to, first;
    uint32_t chance = 0;

    if (!range || sscanf (range, "%u-%u", &from, &to) != 2 || from < 1 || to > 65535 || from > to)
        return listen_open (s, NULL, 0);
    if (getrandom (&chance, sizeof (chance), 0) < 0)
        chance = (uint32_t)getpid ();
    first = chance % (to - from + 1);
    for (unsigned i = 0; i <= to - from; i++)
        if (listen_open (s, NULL, (int)(from + (first + i) % (to - from + 1))) == 0)
            return 0;
    return -1;
}

struct handshake gather_handshake (const unsigned char *key)
{
    struct handshake h = { .service = HANDSHAKE_COLLECTOR, .version = PROTOCOL, .confirms = true };

    memcpy (h.key, key, sizeof (h.key));
    return h;
}

int gather_open (struct gather *g, int port, const char *range, struct slurmdl_error *err)
{
    int rv = port ? listen_open (&g->listener, NULL, port) : listen_in (&g->listener, range);

    return rv < 0 ? errorf (err, "cannot listen: %s", strerror (errno)) : 0;
}
