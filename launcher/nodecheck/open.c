/* SPDX-License-Identifier: Apache-2.0 */
/* Listen for the ranks of a step, on an allowed port, with a token. */
#include "launcher/nodecheck/open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/comm/net/listener.h"

/* Those of srun are often the only ones that a firewall lets through. */
static int listen_in (const char *range)
{
    unsigned from, to, first;
    uint32_t chance = 0;
    int fd;

    if (!range || sscanf (range, "%u-%u", &from, &to) != 2 || from < 1
        || to > 65535 || from > to)
        return listener_bind (NULL, 0);
    if (getrandom (&chance, sizeof (chance), 0) < 0)
        chance = (uint32_t)getpid ();
    first = chance % (to - from + 1);
    for (unsigned i = 0; i <= to - from; i++)
        if ((fd = listener_bind (NULL,
                                 (int)(from + (first + i) % (to - from + 1))))
            >= 0)
            return fd;
    return -1;
}

void gather_token_print (const unsigned char *token, char *text)
{
    for (int i = 0; i < HANDSHAKE_TOKEN; i++)
        snprintf (text + 2 * (size_t)i, 3, "%02x", token[i]);
}

void gather_token_read (const char *text, unsigned char *token)
{
    memset (token, 0, HANDSHAKE_TOKEN);
    for (int i = 0; i < HANDSHAKE_TOKEN; i++, text += 2)
        if (sscanf (text, "%2hhx", &token[i]) != 1)
            return;
}

static int make_token (unsigned char *token)
{
    static const unsigned char none[HANDSHAKE_TOKEN];

    if (memcmp (token, none, HANDSHAKE_TOKEN))
        return 0;
    return getrandom (token, HANDSHAKE_TOKEN, 0) == HANDSHAKE_TOKEN ? 0 : -1;
}

int gather_open (struct gather *g,
                 int port,
                 const char *range,
                 struct slurmdl_error *err)
{
    g->listener = port ? listener_bind (NULL, port) : listen_in (range);
    if (g->listener < 0)
        return errorf (err, "cannot listen: %s", strerror (errno));
    g->port = listener_port (g->listener);
    if (make_token (g->token) < 0) {
        close (g->listener);
        return errorf (err, "getrandom: %s", strerror (errno));
    }
    return 0;
}
