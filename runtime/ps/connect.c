/* SPDX-License-Identifier: Apache-2.0 */
/* A worker connects to a server, and goes on with it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/link.h"

static bool was_applied (const struct ps_record *r, const struct ps_header *a)
{
    int64_t last = (int64_t)a->count;

    return r->h.n > 0
           && (r->h.clock < last || (r->h.clock == last && r->h.n <= a->n));
}

/* What is to be sent again after a connection was made. */
static void
resume (struct slurmdl_ps *ps, struct ps_link *l, const struct ps_header *a)
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

/* The place is open for another process to take. */
static void give_up (struct slurmdl_ps *ps, struct ps_link *l)
{
    if (l->lost == l->number)
        return;
    l->lost = l->number;
    psregistration_lose (ps->dir, "server", l->server, l->number, &l->entry);
}

/* This one may be what others cannot reach. */
static int own_place (const struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_entry e;
    uint64_t number;

    if (psregistration_newest (ps->dir, "worker", ps->index, &number, &e) != 1
        || number <= ps->number)
        return 0;
    errno = ESTALE;
    return errorf (err,
                   e.claim == ps->entry.claim
                       ? "worker %ld (%s) was declared lost: the servers "
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
        || process_id_has_ended (&l->entry.member, &ps->entry.member))
        give_up (ps, l);
    return 0;
}

static int refused (const struct ps_link *l,
                    const struct ps_header *a,
                    const char *text,
                    struct slurmdl_error *err)
{
    errno = (int)a->status;
    return errorf (err, "server %ld (%s): %s", l->server, l->entry.host, text);
}

int pslink_connect (struct slurmdl_ps *ps,
                    struct ps_link *l,
                    struct slurmdl_error *err)
{
    struct ps_header a;
    char text[PS_ANSWER_TEXT + 1];
    int fd;
    int rv;

    rv = psregistration_newest (
        ps->dir, "server", l->server, &l->number, &l->entry);
    if (rv < 0 && errno == EPERM)
        return errorf (err,
                       "%.120s/server-%ld.%08" PRIu64
                       ": belongs to another user, or is no file: remove it",
                       ps->name,
                       l->server,
                       l->number);
    if (rv != 1)
        return 0;
    if (l->entry.state == PS_LEFT && ps->client->joined) {
        errno = ECONNRESET;
        return errorf (err,
                       "server %ld (%s) has left: all other workers have left, "
                       "or this one was declared lost",
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
    rv = pshandshake_say (ps, l, fd, &a, text);
    if (rv < 0 || a.status) {
        rv = rv < 0 ? not_connected (ps, l, errno == ETIMEDOUT, err)
                    : refused (l, &a, text, err);
        close (fd);
        return rv;
    }
    l->fd = fd;
    l->clock = a.clock;
    l->floor = (int64_t)a.offset;
    resume (ps, l, &a);
    return 1;
}
