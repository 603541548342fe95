/* SPDX-License-Identifier: Apache-2.0 */
/* The handshake of a worker with a server. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/clean.h"
#include "runtime/comm/net/handshake.h"
#include "runtime/comm/net/socket.h"
#include "runtime/ps/link.h"

enum { HELLO_SECONDS = 10 };

static void
fill_hello (struct slurmdl_ps *ps, struct ps_link *l, struct ps_hello *h)
{
    h->server = l->server;
    h->servers = ps->servers;
    h->worker = ps->index;
    h->workers = ps->workers;
    h->mode = (int64_t)ps->mode;
    h->staleness = ps->staleness;
    h->cut = ps->client->told;
    h->claim = ps->entry.claim;
    h->place = ps->number;
    h->before = l->claim;
    h->timeout = ps->timeout;
    h->entry = ps->entry;
    memset (h->entry.token, 0, sizeof (h->entry.token));
}

struct handshake pshandshake_with (const struct ps_entry *e)
{
    struct handshake h = { .service = HANDSHAKE_PS, .version = PS_VERSION };

    memcpy (h.key, e->token, sizeof (h.key));
    return h;
}

static int exchange (int fd,
                     const struct ps_entry *server,
                     const struct ps_hello *h,
                     struct ps_header *a,
                     char *text)
{
    struct handshake with = pshandshake_with (server);

    *text = '\0';
    if (handshake_call (fd, &with, h, sizeof (*h), monotonic () + HELLO_SECONDS)
            < 0
        || socket_recv (fd, a, sizeof (*a), monotonic () + HELLO_SECONDS) < 0)
        return -1;
    errno = EBADMSG;
    if (a->magic != PS_MAGIC || a->kind != PS_HELLO
        || a->bytes > PS_ANSWER_TEXT)
        return -1;
    if (socket_recv (fd, text, a->bytes, monotonic () + HELLO_SECONDS) < 0)
        return -1;
    text[a->bytes] = '\0';
    clean_text (text);
    return 0;
}

int pshandshake_say (struct slurmdl_ps *ps,
                     struct ps_link *l,
                     int fd,
                     struct ps_header *a,
                     char *text)
{
    struct ps_hello h;

    memset (&h, 0, sizeof (h));
    fill_hello (ps, l, &h);
    return exchange (fd, &l->entry, &h, a, text);
}

/* It knows its token, and says that there is no such worker. */
bool pshandshake_is_served (const struct ps_entry *e)
{
    struct ps_hello h;
    struct ps_header a;
    char text[PS_ANSWER_TEXT + 1];
    int fd = pswire_connect (e);
    bool is;

    if (fd < 0)
        return false;
    memset (&h, 0, sizeof (h));
    h.server = h.worker = -1;
    is = exchange (fd, e, &h, &a, text) == 0 && a.status == EPROTO;
    close (fd);
    return is;
}
