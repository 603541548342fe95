/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a worker: made, queued, answered, kept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/ps/link.h"

struct ps_record *
psrecord_create (const struct slurmdl_ps *ps, enum ps_kind kind, size_t copy)
{
    struct ps_record *r = malloc (sizeof (*r) + copy);

    if (!r)
        return NULL;
    memset (r, 0, sizeof (*r));
    r->h.magic = PS_MAGIC;
    r->h.version = PS_VERSION;
    r->h.kind = (uint16_t)kind;
    r->h.clock = ps->client->clock;
    r->h.bytes = copy;
    r->body = r->own;
    return r;
}

void psrecord_destroy (struct ps_record *r)
{
    if (r)
        free (r->where);
    free (r);
}

static size_t record_size (const struct ps_record *r)
{
    return sizeof (*r) + (r->body == r->own ? r->h.bytes : 0);
}

void psqueue_add (struct ps_queue *q, struct ps_record *r)
{
    r->next = NULL;
    if (q->tail)
        q->tail->next = r;
    else
        q->head = r;
    q->tail = r;
}

void pslink_add (struct slurmdl_ps *ps, struct ps_link *l, struct ps_record *r)
{
    if (!l->queue.head)
        l->since = monotonic ();
    psqueue_add (&l->queue, r);
    if (!l->send)
        l->send = r;
    if (r->logged)
        ps->stats.log_bytes += record_size (r);
}

static void
forget (struct slurmdl_ps *ps, struct ps_queue *q, struct ps_record *r)
{
    q->head = r->next;
    if (!q->head)
        q->tail = NULL;
    if (r->logged)
        ps->stats.log_bytes -= record_size (r);
    psrecord_destroy (r);
}

static void
pslink_trim (struct slurmdl_ps *ps, struct ps_link *l, int64_t saved)
{
    while (l->log.head && l->log.head->h.clock < saved)
        forget (ps, &l->log, l->log.head);
}

void pslink_destroy (struct slurmdl_ps *ps, struct ps_link *l)
{
    while (l->log.head)
        forget (ps, &l->log, l->log.head);
    while (l->queue.head)
        forget (ps, &l->queue, l->queue.head);
    if (l->fd >= 0)
        close (l->fd);
    free (l->body);
}

int psclient_break (struct slurmdl_ps *ps, int code, const char *why)
{
    struct ps_client *c = ps->client;

    if (!c->broken) {
        c->broken = true;
        c->code = code;
        snprintf (c->why.text, sizeof (c->why.text), "%s", why);
    }
    errno = code;
    return -1;
}

static void
settle (struct slurmdl_ps *ps, int64_t id, int code, const char *why)
{
    struct ps_ticket *t = ps->client->tickets;

    while (t && t->id != id)
        t = t->next;
    if (!t)
        return;
    t->left--;
    if (code && !t->code) {
        t->code = code;
        snprintf (t->why.text, sizeof (t->why.text), "%s", why);
    }
}

void pslink_complete (struct slurmdl_ps *ps,
                      struct ps_link *l,
                      struct ps_record *r,
                      int code,
                      const char *why)
{
    char text[256];

    if (code) {
        snprintf (text,
                  sizeof (text),
                  "server %ld (%s): %.160s",
                  l->server,
                  l->entry.host,
                  why && *why ? why : strerror (code));
        why = text;
    }
    if (r->ticket)
        settle (ps, r->ticket, code, why);
    else if (code)
        psclient_break (ps, code, why);
    r->ticket = 0;
    if (r->logged && r->h.clock >= ps->client->saved) {
        psqueue_add (&l->log, r);
        return;
    }
    if (r->logged)
        ps->stats.log_bytes -= record_size (r);
    psrecord_destroy (r);
}

int psclient_tell_all (struct slurmdl_ps *ps,
                       enum ps_kind kind,
                       int64_t clock,
                       bool logged)
{
    for (long i = 0; i < ps->servers; i++) {
        struct ps_record *r = psrecord_create (ps, kind, 0);
        if (!r)
            return psclient_break (ps, ENOMEM, "out of memory");
        r->h.clock = clock;
        r->h.count = kind == PS_CLOCK && ps->client->wanted;
        r->logged = logged && ps->log_bytes > 0;
        pslink_add (ps, &ps->client->links[i], r);
    }
    return 0;
}

/* Server 0 says in its answer to a clock where all servers are to save; they
 * hear of it before anything of a later iteration (apply.c).
 */
void psclient_answered (struct slurmdl_ps *ps,
                        struct ps_link *l,
                        const struct ps_record *r,
                        const struct ps_header *h)
{
    struct ps_client *c = ps->client;

    if (h->saved > c->saved) {
        c->saved = h->saved;
        for (long i = 0; i < ps->servers; i++)
            pslink_trim (ps, &c->links[i], c->saved);
    }
    if (r->h.kind != PS_CLOCK || l->server != 0 || h->status)
        return;
    if (h->clock > 0 && h->clock != c->told) {
        c->told = h->clock;
        psclient_tell_all (ps, PS_CUT, h->clock, true);
    }
    if (r->h.clock + 1 == c->clock)
        c->clocked = true;
}
