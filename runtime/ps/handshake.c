/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says first to a server. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/net/socket.h"
#include "runtime/ps/link.h"

enum { HELLO_SECONDS = 10 };

struct hello {
    struct ps_header head;
    struct ps_hello hello;
};

static void
fill_hello (struct slurmdl_ps *ps, struct ps_link *l, struct ps_hello *h)
{
    memcpy (h->token, l->entry.token, sizeof (h->token));
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
}

static int exchange (int fd, struct hello *m, struct ps_header *a, char *text)
{
    m->head = (struct ps_header){ .magic = PS_MAGIC,
                                  .version = PS_VERSION,
                                  .kind = PS_HELLO,
                                  .bytes = sizeof (m->hello) };
    *text = '\0';
    if (socket_send (fd, m, sizeof (*m), monotonic () + HELLO_SECONDS) < 0
        || socket_recv (fd, a, sizeof (*a), monotonic () + HELLO_SECONDS) < 0)
        return -1;
    errno = EBADMSG;
    if (a->magic != PS_MAGIC || a->kind != PS_HELLO
        || a->bytes > PS_ANSWER_TEXT)
        return -1;
    if (socket_recv (fd, text, a->bytes, monotonic () + HELLO_SECONDS) < 0)
        return -1;
    text[a->bytes] = '\0';
    return 0;
}

int pshandshake_say (struct slurmdl_ps *ps,
                     struct ps_link *l,
                     int fd,
                     struct ps_header *a,
                     char *text)
{
    struct hello m;

    memset (&m, 0, sizeof (m));
    fill_hello (ps, l, &m.hello);
    return exchange (fd, &m, a, text);
}

/* It knows its token, and says that there is no such worker. */
bool pshandshake_is_served (const struct ps_entry *e)
{
    struct hello m;
    struct ps_header a;
    char text[PS_ANSWER_TEXT + 1];
    int fd = pswire_connect (e);
    bool is;

    if (fd < 0)
        return false;
    memset (&m, 0, sizeof (m));
    memcpy (m.hello.token, e->token, sizeof (m.hello.token));
    m.hello.server = m.hello.worker = -1;
    is = exchange (fd, &m, &a, text) == 0 && a.status == EPROTO;
    close (fd);
    return is;
}
