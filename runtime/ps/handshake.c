/* SPDX-License-Identifier: Apache-2.0 */
/* A worker finds a server, and goes on with it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/net/socket.h"
#include "runtime/ps/link.h"

enum { HELLO_SECONDS = 10, TEXT = 256 };

/* ---- what goes back to the queue ---- */

static bool was_applied (const struct ps_record *r, const struct ps_header *a)
{
    int64_t last = (int64_t)a->count;

    return r->h.n > 0
           && (r->h.clock < last || (r->h.clock == last && r->h.n <= a->n));
}

void pslink_resume (struct slurmdl_ps *ps,
                    struct ps_link *l,
                    const struct ps_header *a)
{
    struct ps_record *r = l->queue.head;
    struct ps_record *next;

    if (l->claim && a->table != l->claim) {
        ps->stats.lost++;
        if (l->log.head) {
            l->log.tail->next = r;
            r = l->log.head;
        }
        l->log = (struct ps_queue){ NULL, NULL };
    }
    l->claim = a->table;
    l->queue = (struct ps_queue){ NULL, NULL };
    for (; r; r = next) {
        next = r->next;
        r->next = NULL;
        if (was_applied (r, a)) {
            pslink_complete (ps, l, r, 0, NULL);
            continue;
        }
        psqueue_add (&l->queue, r);
        ps->stats.repeated++;
    }
    l->send = l->queue.head;
    l->sent = l->got = 0;
}

/* ---- hello ---- */

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
    if (a->magic != PS_MAGIC || a->kind != PS_HELLO || a->bytes > TEXT)
        return -1;
    if (socket_recv (fd, text, a->bytes, monotonic () + HELLO_SECONDS) < 0)
        return -1;
    text[a->bytes] = '\0';
    return 0;
}

static int say_hello (struct slurmdl_ps *ps,
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
bool pshello_is_served (const struct ps_entry *e)
{
    struct hello m;
    struct ps_header a;
    char text[TEXT + 1];
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

/* The place is open for another process to take. */
static void give_up (struct slurmdl_ps *ps, struct ps_link *l)
{
    if (l->lost == l->number)
        return;
    l->lost = l->number;
    psplace_lose (ps->dir, "server", l->server, l->number, &l->entry);
}

/* This one may be what others cannot reach. */
static int own_place (const struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_entry e;
    uint64_t number;

    if (psplace_newest (ps->dir, "worker", ps->index, &number, &e) != 1
        || number <= ps->number)
        return 0;
    errno = ESTALE;
    return errorf (err,
                   e.claim == ps->entry.claim
                       ? "worker %ld (%s) was given up as lost: the servers "
                         "cannot reach this host"
                       : "another process has taken the place of worker %ld "
                         "(%s)",
                   ps->index,
                   ps->entry.host);
}

static int not_connected (struct slurmdl_ps *ps,
                          struct ps_link *l,
                          bool answered,
                          struct slurmdl_error *err)
{
    bool late = monotonic () - l->since > ps->grace;

    if (late && own_place (ps, err) < 0)
        return -1;
    if ((!answered && late)
        || member_has_ended (&l->entry.member, &ps->entry.member))
        give_up (ps, l);
    return 0;
}

static int refused (struct slurmdl_ps *ps,
                    struct ps_link *l,
                    const struct ps_header *a,
                    const char *text,
                    struct slurmdl_error *err)
{
    if (a->status == EACCES) /* another process has this port now */
        return not_connected (ps, l, false, err);
    errno = (int)a->status;
    return errorf (err, "server %ld (%s): %s", l->server, l->entry.host, text);
}

int pslink_connect (struct slurmdl_ps *ps,
                    struct ps_link *l,
                    struct slurmdl_error *err)
{
    struct ps_header a;
    char text[TEXT + 1];
    int fd;
    int rv;

    if (psplace_newest (ps->dir, "server", l->server, &l->number, &l->entry)
        != 1)
        return 0;
    if (l->entry.state == PS_LEFT && ps->client->joined) {
        errno = ECONNRESET;
        return errorf (err,
                       "server %ld (%s) has left: all other workers have left, "
                       "or this one was given up as lost",
                       l->server,
                       l->entry.host);
    }
    if (l->entry.state != PS_SERVING && l->entry.state != PS_RESTORING)
        return own_place (ps, err);
    if ((fd = pswire_connect (&l->entry)) < 0)
        return not_connected (ps, l, false, err);
    if (l->entry.state == PS_RESTORING) {
        close (fd); /* its host is there */
        return not_connected (ps, l, true, err);
    }
    pswire_tune (fd, ps->grace);
    rv = say_hello (ps, l, fd, &a, text);
    if (rv < 0 || a.status) {
        rv = rv < 0 ? not_connected (ps, l, errno == ETIMEDOUT, err)
                    : refused (ps, l, &a, text, err);
        close (fd);
        return rv;
    }
    l->fd = fd;
    l->clock = a.clock;
    l->floor = (int64_t)a.offset;
    pslink_resume (ps, l, &a);
    return 1;
}
