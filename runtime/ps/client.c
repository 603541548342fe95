/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: it joins, ends iterations, waits, and leaves. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/calls.h"

enum { SAVED_SECONDS = 60 };

/* ---- when a wait is over ---- */

static bool all_up (struct slurmdl_ps *ps, int64_t arg)
{
    (void)arg;
    for (long i = 0; i < ps->servers; i++)
        if (ps->client->links[i].fd < 0)
            return false;
    return true;
}

bool psclient_all_sent (struct slurmdl_ps *ps, int64_t arg)
{
    (void)arg;
    for (long i = 0; i < ps->servers; i++)
        if (ps->client->links[i].send)
            return false;
    return true;
}

static bool all_answered (struct slurmdl_ps *ps, int64_t arg)
{
    (void)arg;
    for (long i = 0; i < ps->servers; i++)
        if (ps->client->links[i].queue.head)
            return false;
    return true;
}

static bool is_clocked (struct slurmdl_ps *ps, int64_t arg)
{
    (void)arg;
    return ps->client->clocked;
}

static struct ps_ticket *find_ticket (struct slurmdl_ps *ps, int64_t id)
{
    struct ps_ticket *t = ps->client->tickets;

    while (t && t->id != id)
        t = t->next;
    return t;
}

static bool is_settled (struct slurmdl_ps *ps, int64_t id)
{
    struct ps_ticket *t = find_ticket (ps, id);

    return !t || t->left == 0;
}

/* ---- failure ---- */

static int psclient_check (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    if (err)
        *err->text = '\0';
    if (!ps->client) {
        errno = EINVAL;
        return errorf (err, "this is for workers, and this process serves");
    }
    if (!ps->client->broken)
        return 0;
    errorf (err, "%s", ps->client->why.text);
    errno = ENOTCONN;
    return -1;
}

/* ---- tickets ---- */

struct ps_ticket *psticket_create (struct slurmdl_ps *ps)
{
    struct ps_ticket *t = calloc (1, sizeof (*t));

    if (!t)
        return NULL;
    t->id = ++ps->client->next_ticket;
    t->next = ps->client->tickets;
    ps->client->tickets = t;
    return t;
}

static void ticket_destroy (struct slurmdl_ps *ps, struct ps_ticket *t)
{
    struct ps_ticket **at = &ps->client->tickets;

    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    free (t);
}

static int
wait_ticket (struct slurmdl_ps *ps, int64_t id, struct slurmdl_error *err)
{
    struct ps_ticket *t = find_ticket (ps, id);
    int code;

    if (!t) {
        errno = EINVAL;
        return errorf (err, "there is no ticket %" PRId64, id);
    }
    if (pslinks_pump (ps, is_settled, id, err) < 0)
        return -1;
    if ((code = t->code))
        errorf (err, "%s", t->why.text);
    if (code == ETIMEDOUT)
        psclient_break (ps, code, t->why.text);
    ticket_destroy (ps, t);
    errno = code ? code : errno;
    return code ? -1 : 0;
}

int slurmdl_ps_wait (struct slurmdl_ps *ps,
                     int64_t ticket,
                     struct slurmdl_error *err)
{
    int rv = 0;

    if (psclient_check (ps, err) < 0)
        return -1;
    if (ticket)
        return wait_ticket (ps, ticket, err);
    if (pslinks_pump (ps, all_answered, 0, err) < 0)
        return -1;
    while (ps->client->tickets)
        if (wait_ticket (ps, ps->client->tickets->id, err) < 0)
            rv = -1;
    return rv;
}

/* ---- iterations ---- */

int psclient_ready (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    if (psclient_check (ps, err) < 0)
        return -1;
    return ps->client->clocked ? 0 : pslinks_pump (ps, is_clocked, 0, err);
}

static bool needs_saving (const struct slurmdl_ps *ps)
{
    return ps->log_bytes > 0
           && ps->stats.log_bytes > (uint64_t)ps->log_bytes / 2;
}

/* The log is full: the save of this iteration makes room, if there is one;
 * else that of the next one does.
 */
static int wait_saved (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_client *c = ps->client;
    double until = monotonic () + SAVED_SECONDS;

    if (psclient_ready (ps, err) < 0)
        return -1;
    while (ps->stats.log_bytes > (uint64_t)ps->log_bytes && c->told > c->saved
           && c->told <= c->clock && monotonic () < until) {
        struct ps_record *r = psrecord_create (ps, PS_SAVED, 0);
        struct ps_ticket *t = psticket_create (ps);
        if (!r || !t) {
            psrecord_destroy (r);
            return psclient_break (ps, ENOMEM, "out of memory");
        }
        r->h.clock = c->told;
        r->ticket = t->id;
        t->left = 1;
        pslink_add (ps, &c->links[0], r);
        if (wait_ticket (ps, t->id, err) < 0)
            return -1;
    }
    return 0;
}

static int psclient_clock (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_client *c = ps->client;

    if (needs_saving (ps))
        c->wanted = true;
    if (psclient_tell_all (ps, PS_CLOCK, c->clock, true) < 0)
        return -1;
    c->wanted = false;
    c->clock++;
    c->n = 0;
    c->clocked = false;
    return pslinks_pump (ps, psclient_all_sent, 0, err);
}

int slurmdl_ps_clock (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    if (psclient_ready (ps, err) < 0 || psclient_clock (ps, err) < 0)
        return -1;
    if (ps->log_bytes > 0 && ps->stats.log_bytes > (uint64_t)ps->log_bytes)
        return wait_saved (ps, err);
    return 0;
}

int64_t slurmdl_ps_iteration (const struct slurmdl_ps *ps)
{
    return ps->client ? ps->client->clock : 0;
}

int slurmdl_ps_save (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    if (psclient_check (ps, err) < 0)
        return -1;
    ps->client->wanted = true;
    return 0;
}

int64_t slurmdl_ps_saved (const struct slurmdl_ps *ps)
{
    return ps->client && ps->client->saved > 0 ? ps->client->saved : 0;
}

/* ---- open and close ---- */

static int join (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_client *c = ps->client;
    int64_t least = INT64_MAX;
    int64_t most = 0;

    if (pslinks_pump (ps, all_up, 0, err) < 0)
        return -1;
    for (long i = 0; i < ps->servers; i++) {
        least = c->links[i].clock < least ? c->links[i].clock : least;
        most = c->links[i].floor > most ? c->links[i].floor : most;
    }
    c->clock = least > most ? least : most;
    if (psclient_tell_all (ps, PS_JOIN, c->clock, true) < 0)
        return errorf (err, "out of memory");
    return pslinks_pump (ps, all_answered, 0, err);
}

int psclient_open (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    struct ps_client *c = calloc (1, sizeof (*c));

    ps->client = c;
    if (!c || !(c->links = calloc ((size_t)ps->servers, sizeof (*c->links))))
        return errorf (err, "out of memory");
    c->clocked = true;
    c->saved = -1;
    for (long i = 0; i < ps->servers; i++) {
        c->links[i].server = i;
        c->links[i].fd = -1;
        c->links[i].since = monotonic ();
        c->links[i].pause = 0.02;
    }
    if (ps_claim (ps, err) < 0 || join (ps, err) < 0)
        return -1;
    c->joined = true;
    return 0;
}

static int leave (struct slurmdl_ps *ps)
{
    struct ps_client *c = ps->client;

    if (psclient_ready (ps, NULL) < 0)
        return -1;
    if (c->n > 0 && psclient_clock (ps, NULL) < 0)
        return -1;
    if (pslinks_pump (ps, all_answered, 0, NULL) < 0)
        return -1;
    c->leaving = true;
    if (psclient_tell_all (ps, PS_BYE, c->clock, false) < 0
        || pslinks_pump (ps, all_answered, 0, NULL) < 0)
        return -1;
    ps->entry.state = PS_LEFT;
    psregistration_put (
        ps->dir, "worker", ps->index, ps->number + 1, &ps->entry);
    return 0;
}

int psclient_close (struct slurmdl_ps *ps)
{
    struct ps_client *c = ps->client;
    int rv;
    int saved;

    if (!c)
        return 0;
    rv = c->joined ? leave (ps) : -1;
    saved = errno;
    for (long i = 0; c->links && i < ps->servers; i++)
        pslink_destroy (ps, &c->links[i]);
    while (c->tickets)
        ticket_destroy (ps, c->tickets);
    free (c->links);
    free (c->tables);
    free (c->keys);
    free (c);
    ps->client = NULL;
    errno = saved;
    return rv;
}
