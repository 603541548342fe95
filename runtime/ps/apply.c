/* SPDX-License-Identifier: Apache-2.0 */
/* What a server does with requests. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/server.h"

enum { SAVED_SECONDS = 5 };

/* ---- who waits for whom ---- */

/* Whether a request of this iteration must wait for other workers. */
static bool too_early (const struct ps_server *s, int64_t clock)
{
    switch (s->ps->mode) {
    case SLURMDL_PS_SYNC:
        return clock > s->done;
    case SLURMDL_PS_BOUNDED:
        return clock - s->ps->staleness > psserver_slowest (s);
    case SLURMDL_PS_ASYNC:
        break;
    }
    return false;
}

static bool changes (const struct ps_server *s, const struct ps_header *h)
{
    (void)s;
    return h->kind == PS_PUSH || h->kind == PS_PUSH_ROWS || h->kind == PS_CLOCK;
}

static bool before_cut (const struct ps_server *s, const struct ps_header *h)
{
    return s->cut == 0 || h->clock < s->cut || !changes (s, h);
}

void psapply_explain (const struct ps_server *s,
                      const struct ps_peer *p,
                      struct slurmdl_error *why)
{
    struct ps_table *t =
        psserver_table ((struct ps_server *)(uintptr_t)s, p->in.table);
    const struct ps_worker *w;

    for (long i = 0; i < s->ps->workers; i++) {
        w = &s->workers[i];
        if (t && t->missing && i == 0)
            errorf (why,
                    "worker 0 (%s) has not given the initial values of '%s'",
                    *w->entry.host ? w->entry.host : "it has not come",
                    t->spec.name);
        else if (w->life == PS_UNSEEN)
            errorf (why, "worker %ld has not come", i);
        else if (psserver_waits_for (w) && w->clock < p->in.clock)
            errorf (why,
                    "worker %ld (%s%s) has ended %" PRId64 " iterations only",
                    i,
                    w->entry.host,
                    w->life == PS_BROKEN ? ", not connected" : "",
                    w->clock);
    }
    errorf (why, "the server has not saved yet");
}

/* ---- tables ---- */

static bool same_spec (const struct ps_spec *a, const struct ps_spec *b)
{
    struct ps_spec c = *b;

    c.rate = a->rate; /* it may have been changed */
    return !memcmp (a, &c, sizeof (c));
}

static enum ps_did
declare (struct ps_server *s, struct ps_peer *p, struct slurmdl_error *why)
{
    struct ps_spec spec;
    struct ps_table *t = psserver_table (s, p->in.table);

    memcpy (&spec, p->body, sizeof (spec));
    if (p->in.bytes != sizeof (spec) || !psserver_is_good_spec (&spec)
        || ps_key (spec.name) != p->in.table) {
        errno = EINVAL;
        errorf (why, "invalid table");
        return PS_FAILED;
    }
    if (t && !same_spec (&t->spec, &spec)) {
        errno = EPROTO;
        errorf (why, "another worker has declared '%s' differently", spec.name);
        return PS_FAILED;
    }
    if (!t) {
        t = ps_table_create (
            &spec, s->ps->index, s->ps->servers, s->ps->workers);
        if (psserver_add_table (s, t) < 0) {
            ps_table_destroy (t);
            errno = ENOMEM;
            errorf (why, "no memory for its part of '%s'", spec.name);
            return PS_FAILED;
        }
    }
    if (p->worker == 0 && p->in.count == 0 && t->missing)
        ps_table_initial (t, 0, NULL, 0);
    return PS_DONE;
}

static bool good_range (const struct ps_table *t, const struct ps_header *h)
{
    return ps_table_is_dense (t) && h->offset % PS_BLOCK == 0
           && h->count <= t->n && h->offset <= t->n - h->count
           && (h->count % PS_BLOCK == 0 || h->offset + h->count == t->n);
}

/* Whether header and body fit the table. */
static bool good_request (const struct ps_table *t, const struct ps_header *h)
{
    uint64_t row = (uint64_t)t->width * sizeof (float);

    switch ((enum ps_kind)h->kind) {
    case PS_INITIAL:
    case PS_PUSH:
        return good_range (t, h) && h->bytes == h->count * sizeof (float);
    case PS_PULL:
        return good_range (t, h) && h->bytes == 0;
    case PS_PUSH_ROWS:
        return !ps_table_is_dense (t) && h->count <= PS_ROWS_BYTES_MAX
               && h->bytes == h->count * (8 + row);
    case PS_PULL_ROWS:
        return !ps_table_is_dense (t) && h->count <= PS_ROWS_BYTES_MAX
               && h->bytes == h->count * 8;
    case PS_RATE:
        return h->bytes == sizeof (double);
    default:
        return false;
    }
}

/* ---- push ---- */

static int push_sync (struct ps_server *s,
                      struct ps_peer *p,
                      struct ps_table *t,
                      const float *data)
{
    const struct ps_header *h = &p->in;

    if (h->clock < s->done)
        return 0; /* the others have gone on without it */
    return h->kind == PS_PUSH
               ? ps_table_keep (t, p->worker, h->offset, data, h->count)
               : ps_table_keep_rows (t,
                                     p->worker,
                                     (const uint64_t *)(void *)p->body,
                                     data,
                                     h->count);
}

static int push_now (struct ps_peer *p, struct ps_table *t, const float *data)
{
    const struct ps_header *h = &p->in;

    if (h->kind == PS_PUSH_ROWS)
        return ps_table_apply_rows (
            t, (const uint64_t *)(void *)p->body, data, h->count);
    ps_table_apply (t, h->offset, data, h->count);
    return 0;
}

static bool is_repeated (const struct ps_worker *w, const struct ps_header *h)
{
    return h->clock < w->last_clock
           || (h->clock == w->last_clock && h->n <= w->last_n);
}

static enum ps_did
push (struct ps_server *s, struct ps_peer *p, struct ps_table *t)
{
    struct ps_worker *w = &s->workers[p->worker];
    size_t ids = p->in.kind == PS_PUSH_ROWS ? p->in.count * 8 : 0;
    const float *data = (const float *)(void *)(p->body + ids);
    int rv;

    if (is_repeated (w, &p->in)) {
        s->ps->stats.repeated++;
        return PS_DONE;
    }
    if (t->missing || too_early (s, p->in.clock))
        return PS_HELD;
    if (s->ps->mode == SLURMDL_PS_SYNC)
        rv = push_sync (s, p, t, data);
    else
        rv = push_now (p, t, data);
    if (rv < 0) {
        errno = ENOMEM;
        return PS_FAILED;
    }
    w->last_clock = p->in.clock;
    w->last_n = p->in.n;
    s->ps->stats.pushes++;
    return PS_DONE;
}

/* ---- pull ---- */

static void note_ahead (struct ps_server *s, int64_t clock)
{
    int64_t slowest = psserver_slowest (s);

    if (slowest != INT64_MAX && clock - slowest > s->ps->stats.ahead)
        s->ps->stats.ahead = clock - slowest;
}

static enum ps_did pull_rows (struct ps_peer *p, struct ps_table *t)
{
    size_t row = t->width * sizeof (float);
    const uint64_t *ids = (const uint64_t *)(void *)p->body;
    unsigned char *to = psanswer_room (p, p->in.count * row);

    if (!to) {
        errno = ENOMEM;
        return PS_FAILED;
    }
    for (uint64_t i = 0; i < p->in.count; i++) {
        int64_t r = ps_table_row (t, ids[i]);
        if (r < 0) {
            errno = ENOMEM;
            return PS_FAILED;
        }
        memcpy (to + i * row, t->value[0] + (uint64_t)r * t->width, row);
    }
    return PS_DONE;
}

static enum ps_did
pull (struct ps_server *s, struct ps_peer *p, struct ps_table *t)
{
    if (t->missing || too_early (s, p->in.clock))
        return PS_HELD;
    note_ahead (s, p->in.clock);
    s->ps->stats.pulls++;
    if (p->in.kind == PS_PULL_ROWS)
        return pull_rows (p, t);
    psanswer (p, t->value[0] + p->in.offset, p->in.count * sizeof (float));
    return PS_DONE;
}

/* ---- iterations and saves ---- */

/* Server 0 chooses, ahead of all workers; they tell the other servers. */
static void choose_cut (struct ps_server *s)
{
    int64_t most = psserver_fastest (s);
    int64_t every = s->ps->save_every;

    if (s->ps->index != 0)
        return;
    if (s->wanted)
        pssave_cut (s, most + 1);
    else if (every > 0)
        pssave_cut (s, (most / every + 1) * every);
}

static enum ps_did end_iteration (struct ps_server *s, struct ps_peer *p)
{
    struct ps_worker *w = &s->workers[p->worker];

    if (p->in.clock >= w->clock) {
        if (too_early (s, p->in.clock))
            return PS_HELD;
        w->clock = p->in.clock + 1;
        w->last_clock = w->clock;
        w->last_n = 0;
    } else
        s->ps->stats.repeated++;
    if (p->in.count)
        s->wanted = true;
    choose_cut (s);
    p->out.clock = s->cut;
    return PS_DONE;
}

static enum ps_did wait_saved (struct ps_server *s, struct ps_peer *p)
{
    if (s->saved < p->in.clock && p->held
        && monotonic () - p->since < SAVED_SECONDS)
        return PS_HELD;
    return s->saved < p->in.clock && !p->held ? PS_HELD : PS_DONE;
}

static int end_tables (struct ps_server *s)
{
    for (size_t i = 0; i < s->ntables; i++)
        if (ps_table_end (s->tables[i]) < 0)
            return -1;
    s->done++;
    return 0;
}

int psapply_progress (struct ps_server *s, struct slurmdl_error *err)
{
    int64_t slowest = psserver_slowest (s);
    int64_t target = slowest == INT64_MAX ? psserver_fastest (s) : slowest;

    while (s->ps->mode == SLURMDL_PS_SYNC && s->done < target)
        if (end_tables (s) < 0)
            return errorf (err, "out of memory");
    if (!s->cut || slowest < s->cut
        || (slowest == INT64_MAX && psserver_fastest (s) < s->cut))
        return 0;
    if (s->saving) /* what is later waits for the one before */
        return 0;
    if (pssave_begin (s, err) < 0)
        return -1;
    s->cut = 0;
    s->wanted = false;
    return 0;
}

/* ---- all of them ---- */

static enum ps_did apply_to_table (struct ps_server *s,
                                   struct ps_peer *p,
                                   struct slurmdl_error *why)
{
    struct ps_table *t = psserver_table (s, p->in.table);

    errno = EINVAL;
    if (!t || !good_request (t, &p->in)) {
        errorf (why, "the request does not fit the table");
        return PS_FAILED;
    }
    switch ((enum ps_kind)p->in.kind) {
    case PS_INITIAL:
        if (p->worker == 0)
            ps_table_initial (
                t, p->in.offset, (const float *)(void *)p->body, p->in.count);
        return PS_DONE;
    case PS_PUSH:
    case PS_PUSH_ROWS:
        return push (s, p, t);
    case PS_PULL:
    case PS_PULL_ROWS:
        return pull (s, p, t);
    default:
        memcpy (&t->spec.rate, p->body, sizeof (t->spec.rate));
        return PS_DONE;
    }
}

enum ps_did psapply_request (struct ps_server *s,
                             struct ps_peer *p,
                             struct slurmdl_error *why)
{
    psanswer (p, NULL, 0);
    if (!before_cut (s, &p->in))
        return PS_HELD;
    switch ((enum ps_kind)p->in.kind) {
    case PS_HELLO:
        return psworkers_hello (s, p, why);
    case PS_JOIN:
        return psworkers_join (s, p, why);
    case PS_BYE:
        return psworkers_bye (s, p, why);
    case PS_DECLARE:
        return declare (s, p, why);
    case PS_CLOCK:
        return end_iteration (s, p);
    case PS_CUT:
        pssave_cut (s, p->in.clock);
        return PS_DONE;
    case PS_SAVED:
        return wait_saved (s, p);
    default:
        return apply_to_table (s, p, why);
    }
}
