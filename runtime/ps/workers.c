/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a server: they join, are lost, are replaced, and leave. */
#include <errno.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/server.h"

enum { PATIENCE = 4 };

static bool fits (const struct slurmdl_ps *ps,
                  const struct ps_hello *h,
                  struct slurmdl_error *why)
{
    errno = EPROTO;
    if (h->server != ps->index || h->worker < 0 || h->worker >= ps->workers
        || h->servers != ps->servers || h->workers != ps->workers)
        errorf (why,
                "it is server %ld of %ld, for %ld workers",
                ps->index,
                ps->servers,
                ps->workers);
    else if (h->mode != (int64_t)ps->mode || h->staleness != ps->staleness)
        errorf (why,
                "its mode is %s, staleness %lld",
                ps_modes[ps->mode],
                (long long)ps->staleness);
    else
        return true;
    return false;
}

static bool is_current (const struct ps_worker *w,
                        const struct ps_hello *h,
                        struct slurmdl_error *why)
{
    errno = ESTALE;
    if (h->claim < w->claim)
        errorf (why, "another process has taken this worker's place");
    else if (h->claim == w->claim && w->life == PS_GONE)
        errorf (why, "this worker was declared lost: start it again");
    else
        return true;
    return false;
}

static void
forget_unfinished (struct ps_server *s, struct ps_worker *w, long worker)
{
    if (s->ps->mode != SLURMDL_PS_SYNC || w->clock > s->done)
        return;
    for (size_t i = 0; i < s->ntables; i++)
        ps_table_forget (s->tables[i], worker);
    w->last_clock = w->clock;
    w->last_n = 0;
}

/* Where the others are, if they have gone on without it. */
static int64_t floor_of (struct ps_server *s, struct ps_worker *w)
{
    int64_t slowest = psserver_slowest (s);

    if (s->ps->mode == SLURMDL_PS_SYNC)
        return s->done;
    return w->life != PS_GONE || s->ps->mode == SLURMDL_PS_ASYNC
                   || slowest == INT64_MAX
               ? w->clock
               : slowest;
}

static void drop_others (struct ps_server *s, const struct ps_peer *p)
{
    for (size_t i = 0; i < s->npeers; i++) {
        struct ps_peer *q = &s->peers[i];
        if (q != p && q->known && q->worker == p->worker) {
            q->known = false; /* its end means nothing any more */
            q->close_after = true;
        }
    }
}

enum ps_did psworkers_hello (struct ps_server *s,
                             struct ps_peer *p,
                             struct slurmdl_error *why)
{
    struct ps_hello h;
    struct ps_worker *w;

    memcpy (&h, p->body, sizeof (h));
    if (!fits (s->ps, &h, why))
        return PS_FAILED;
    w = &s->workers[h.worker];
    if (!is_current (w, &h, why))
        return PS_FAILED;
    if (h.claim > w->claim && w->claim)
        forget_unfinished (s, w, h.worker);
    p->known = true;
    p->worker = h.worker;
    p->timeout = h.timeout;
    drop_others (s, p);
    p->out.offset = (uint64_t)floor_of (s, w);
    w->claim = h.claim;
    w->place = h.place;
    w->entry = h.entry;
    w->entry.host[sizeof (w->entry.host) - 1] = '\0';
    w->life = PS_LIVE;
    s->again = s->again || (h.before && h.before != s->entry->claim);
    pssave_cut (s, h.cut);
    p->out.clock = w->clock;
    p->out.count = (uint64_t)w->last_clock;
    p->out.n = w->last_n;
    p->out.table = s->entry->claim;
    return PS_DONE;
}

enum ps_did psworkers_join (struct ps_server *s,
                            struct ps_peer *p,
                            struct slurmdl_error *why)
{
    struct ps_worker *w = &s->workers[p->worker];

    (void)why;
    if (p->in.clock > w->clock) {
        w->clock = p->in.clock;
        w->last_clock = w->clock;
        w->last_n = 0;
    }
    return PS_DONE;
}

enum ps_did psworkers_bye (struct ps_server *s,
                           struct ps_peer *p,
                           struct slurmdl_error *why)
{
    struct ps_worker *w = &s->workers[p->worker];

    (void)why;
    forget_unfinished (s, w, p->worker);
    w->life = PS_BYED;
    s->byes++;
    p->known = false;
    p->close_after = true;
    return PS_DONE;
}

/* Somebody on another host is, or was until it left. */
static bool is_reached (const struct ps_server *s)
{
    for (long i = 0; i < s->ps->workers; i++)
        if (s->workers[i].life == PS_LIVE
            && strcmp (s->workers[i].entry.host, s->entry->host) != 0)
            return true;
    return s->byes > 0;
}

void psworkers_disconnected (struct ps_server *s, long worker, bool silent)
{
    struct ps_worker *w = &s->workers[worker];

    if (w->life != PS_LIVE)
        return;
    w->life = PS_BROKEN;
    w->silent = silent;
    w->since = monotonic ();
}

/* Whether it is the worker that is lost, and not this server, which most of
 * the others then give up within twice the grace.
 */
static bool is_lost (const struct ps_server *s, const struct ps_worker *w)
{
    double since = monotonic () - w->since;

    if (process_id_has_ended (&w->entry.member, &s->self))
        return true;
    if (!w->silent || psserver_sees_workers (s))
        return since > s->ps->grace;
    return since > PATIENCE * s->ps->grace && is_reached (s);
}

static void lose (struct ps_server *s, long worker)
{
    struct ps_worker *w = &s->workers[worker];

    forget_unfinished (s, w, worker);
    w->life = PS_GONE;
    s->ps->stats.lost++;
    psregistration_lose (s->ps->dir, "worker", worker, w->place, &w->entry);
}

/* One that another server has seen go, and this one has never seen. */
static void look_for (struct ps_server *s, long worker)
{
    struct ps_worker *w = &s->workers[worker];
    struct ps_entry e;
    uint64_t number;

    if (psregistration_newest (s->ps->dir, "worker", worker, &number, &e) != 1
        || (e.state != PS_LOST && e.state != PS_LEFT))
        return;
    w->claim = e.claim;
    w->entry = e;
    w->life = e.state == PS_LOST ? PS_GONE : PS_BYED;
}

static void look_at (struct ps_server *s, long worker, bool files)
{
    struct ps_worker *w = &s->workers[worker];

    if (w->life == PS_BROKEN && is_lost (s, w))
        lose (s, worker);
    else if (w->life == PS_UNSEEN && s->again && files)
        look_for (s, worker);
}

static int nobody (struct ps_server *s, struct slurmdl_error *err)
{
    if (monotonic () - s->alive < s->ps->timeout)
        return 0;
    for (long i = 0; i < s->ps->workers; i++)
        if (s->workers[i].life == PS_GONE || s->workers[i].life == PS_BROKEN) {
            errno = ECONNRESET;
            return errorf (err,
                           "worker %ld (%s) was lost, and no process replaced "
                           "it within %.0f s",
                           i,
                           s->workers[i].entry.host,
                           s->ps->timeout);
        }
    errno = ETIMEDOUT;
    for (long i = 0; i < s->ps->workers; i++)
        if (s->workers[i].life == PS_UNSEEN)
            return errorf (err,
                           "worker %ld has not come within %.0f s",
                           i,
                           s->ps->timeout);
    return 0;
}

int psworkers_look (struct ps_server *s, struct slurmdl_error *err)
{
    bool files = monotonic () - s->asked > 0.5;
    long waited = 0;
    long here = 0;

    if (files)
        s->asked = monotonic ();
    for (long i = 0; i < s->ps->workers; i++) {
        look_at (s, i, files);
        waited += psserver_waits_for (&s->workers[i]);
        here += s->workers[i].life == PS_LIVE;
    }
    if (!waited && s->byes)
        return 1;
    if (here) {
        s->alive = monotonic ();
        return 0;
    }
    return nobody (s, err);
}
