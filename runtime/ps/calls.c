/* SPDX-License-Identifier: Apache-2.0 */
/* Tables, pushes and pulls of a worker. */
#include "runtime/ps/calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/storage/tensor.h"

/* One call: to all servers that have a part in it. */
struct ps_call {
    struct slurmdl_ps *ps;
    const struct slurmdl_ps_table *table;
    uint64_t key;
    enum ps_kind kind;
    struct ps_ticket *ticket;
};

/* A record was not made: for want of memory, if nothing else has broken the
 * client while it was sending.
 */
static int not_sent (struct slurmdl_ps *ps, struct slurmdl_error *err)
{
    psclient_break (ps, ENOMEM, "out of memory");
    errorf (err, "%s", ps->client->why.text);
    errno = ps->client->code;
    return -1;
}

static bool is_change (enum ps_kind kind)
{
    return kind == PS_PUSH || kind == PS_PUSH_ROWS;
}

static void add (struct ps_call *c, long server, struct ps_record *r)
{
    struct slurmdl_ps *ps = c->ps;

    r->h.table = c->key;
    if (is_change (c->kind))
        r->h.n = ++ps->client->n;
    r->logged =
        c->kind != PS_PULL && c->kind != PS_PULL_ROWS && ps->log_bytes > 0;
    if (c->ticket) {
        r->ticket = c->ticket->id;
        c->ticket->left++;
    }
    if (is_change (c->kind))
        ps->stats.pushes++;
    else
        ps->stats.pulls += c->kind == PS_PULL || c->kind == PS_PULL_ROWS;
    pslink_add (ps, &ps->client->links[server], r);
}

/* ---- dense ---- */

static int add_piece (struct ps_call *c,
                      long server,
                      uint64_t offset,
                      uint64_t n,
                      const float *data)
{
    bool copy = c->ps->log_bytes > 0;
    size_t bytes = n * sizeof (float);
    struct ps_record *r = psrecord_create (c->ps, c->kind, copy ? bytes : 0);

    if (!r)
        return -1;
    r->h.offset = offset;
    r->h.count = n;
    r->h.bytes = bytes;
    if (copy)
        memcpy (r->own, data, bytes);
    else
        r->body = (const unsigned char *)data;
    add (c, server, r);
    return 0;
}

static int add_pull (struct ps_call *c, long server, uint64_t n, float *out)
{
    struct ps_record *r = psrecord_create (c->ps, PS_PULL, 0);

    if (!r)
        return -1;
    r->h.count = n;
    r->out = out;
    add (c, server, r);
    return 0;
}

/* Pieces go to all servers in turn, so that all are at work. */
static int send_dense (struct ps_call *c, const float *data)
{
    long servers = c->ps->servers;
    uint64_t lo;
    uint64_t n;
    bool more = true;

    for (uint64_t at = 0; more; at += PS_PIECE) {
        more = false;
        for (long i = 0; i < servers; i++) {
            ps_shard (c->key, c->table->n, i, servers, &lo, &n);
            if (at >= n)
                continue;
            more = true;
            if (add_piece (c,
                           i,
                           at,
                           n - at < PS_PIECE ? n - at : PS_PIECE,
                           data + lo + at)
                < 0)
                return -1;
        }
        /* what was given is on its way while the next is copied */
        if (more && pslinks_pump (c->ps, psclient_all_sent, -1, NULL) < 0)
            return -1;
    }
    return 0;
}

static int receive_dense (struct ps_call *c, float *out)
{
    uint64_t lo;
    uint64_t n;

    for (long i = 0; i < c->ps->servers; i++) {
        ps_shard (c->key, c->table->n, i, c->ps->servers, &lo, &n);
        if (n && add_pull (c, i, n, out + lo) < 0)
            return -1;
    }
    return 0;
}

/* ---- rows ---- */

/* Which of the rows go to a server, in their order. */
static size_t count_rows (const struct slurmdl_ps *ps,
                          long server,
                          const uint64_t *ids,
                          size_t n)
{
    size_t k = 0;

    if (ps->servers == 1)
        return n;
    for (size_t i = 0; i < n; i++)
        k += ps_server_of (ids[i], ps->servers) == server;
    return k;
}

static struct ps_record *make_rows (struct ps_call *c,
                                    long server,
                                    const uint64_t *ids,
                                    size_t n,
                                    const float *rows)
{
    long servers = c->ps->servers;
    size_t k = count_rows (c->ps, server, ids, n);
    size_t row = c->table->row * sizeof (float);
    struct ps_record *r =
        psrecord_create (c->ps, c->kind, k * (8 + (rows ? row : 0)));
    unsigned char *to;
    size_t at = 0;

    if (!r || !k)
        return r;
    to = r->own + k * 8;
    r->h.count = k;
    r->row = c->table->row;
    if (!rows && servers > 1 && !(r->where = malloc (k * sizeof (*r->where)))) {
        psrecord_destroy (r);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        if (ps_server_of (ids[i], servers) != server)
            continue;
        memcpy (r->own + at * 8, &ids[i], 8);
        if (rows)
            memcpy (to + at * row, (const char *)rows + i * row, row);
        else if (r->where)
            r->where[at] = i;
        at++;
    }
    return r;
}

static int send_rows (struct ps_call *c,
                      const uint64_t *ids,
                      size_t n,
                      const float *rows,
                      float *out)
{
    for (long i = 0; i < c->ps->servers; i++) {
        struct ps_record *r = make_rows (c, i, ids, n, rows);
        if (!r)
            return -1;
        if (!r->h.count) {
            psrecord_destroy (r);
            continue;
        }
        r->out = out;
        add (c, i, r);
    }
    return 0;
}

/* ---- calls ---- */

static int begin_call (struct ps_call *c,
                       struct slurmdl_ps *ps,
                       int table,
                       enum ps_kind kind,
                       bool ticket,
                       struct slurmdl_error *err)
{
    if (psclient_ready (ps, err) < 0)
        return -1;
    errno = EINVAL;
    if (table < 0 || (size_t)table >= ps->client->ntables)
        return errorf (err, "there is no table %d", table);
    c->ps = ps;
    c->table = &ps->client->tables[table];
    c->key = ps->client->keys[table];
    c->kind = kind;
    c->ticket = NULL;
    if ((kind == PS_PUSH || kind == PS_PULL) != (c->table->n > 0)) {
        errno = EINVAL;
        return errorf (err,
                       c->table->n
                           ? "the table is dense: slurmdl_ps_push() and _pull()"
                           : "the table is sparse: slurmdl_ps_push_rows() and "
                             "_pull_rows()");
    }
    if (ticket && !(c->ticket = psticket_create (ps)))
        return not_sent (ps, err);
    return 0;
}

static int
end_call (struct ps_call *c, int64_t *ticket, struct slurmdl_error *err)
{
    int64_t id = c->ticket ? c->ticket->id : 0;

    if (!id || ticket) {
        if (ticket)
            *ticket = id;
        return pslinks_pump (c->ps, psclient_all_sent, ticket ? -1 : 0, err);
    }
    return slurmdl_ps_wait (c->ps, id, err);
}

int slurmdl_ps_push (struct slurmdl_ps *ps,
                     int table,
                     const float *gradient,
                     int64_t *ticket,
                     struct slurmdl_error *err)
{
    struct ps_call c;
    bool wait = ticket || ps->log_bytes <= 0;

    if (begin_call (&c, ps, table, PS_PUSH, wait, err) < 0)
        return -1;
    if (send_dense (&c, gradient) < 0)
        return not_sent (ps, err);
    return end_call (&c, ticket, err);
}

int slurmdl_ps_pull (struct slurmdl_ps *ps,
                     int table,
                     float *out,
                     int64_t *ticket,
                     struct slurmdl_error *err)
{
    struct ps_call c;

    if (begin_call (&c, ps, table, PS_PULL, true, err) < 0)
        return -1;
    if (receive_dense (&c, out) < 0)
        return not_sent (ps, err);
    return end_call (&c, ticket, err);
}

int slurmdl_ps_push_pull (struct slurmdl_ps *ps,
                          int table,
                          const float *gradient,
                          float *out,
                          struct slurmdl_error *err)
{
    int64_t pushed = 0;
    int rv;

    if (slurmdl_ps_push (ps, table, gradient, &pushed, err) < 0
        || slurmdl_ps_clock (ps, err) < 0)
        return -1;
    /* without a log 'gradient' is what is sent, and may be 'out' */
    if (ps->log_bytes <= 0 && slurmdl_ps_wait (ps, pushed, err) < 0)
        return -1;
    rv = slurmdl_ps_pull (ps, table, out, NULL, err);
    if (rv == 0 && ps->log_bytes > 0)
        rv = slurmdl_ps_wait (ps, pushed, err);
    return rv;
}

static int check_rows (const struct slurmdl_ps_table *t,
                       const uint64_t *ids,
                       size_t n,
                       struct slurmdl_error *err)
{
    errno = EMSGSIZE;
    if (n > PS_ROWS_BYTES_MAX / (8 + t->row * sizeof (float)))
        return errorf (err, "more than 1 GiB of rows in one call");
    errno = EINVAL;
    for (size_t i = 0; i < n; i++)
        if (ids[i] == UINT64_MAX)
            return errorf (err, "2^64 - 1 is not an id of a row");
    return 0;
}

static int rows (struct slurmdl_ps *ps,
                 int table,
                 enum ps_kind kind,
                 const uint64_t *ids,
                 size_t n,
                 const float *in,
                 float *out,
                 int64_t *ticket,
                 struct slurmdl_error *err)
{
    struct ps_call c;
    bool wait = ticket || ps->log_bytes <= 0 || kind == PS_PULL_ROWS;

    if (begin_call (&c, ps, table, kind, false, err) < 0
        || check_rows (c.table, ids, n, err) < 0)
        return -1;
    if (wait && !(c.ticket = psticket_create (ps)))
        return not_sent (ps, err);
    if (send_rows (&c, ids, n, in, out) < 0)
        return not_sent (ps, err);
    return end_call (&c, ticket, err);
}

int slurmdl_ps_push_rows (struct slurmdl_ps *ps,
                          int table,
                          const uint64_t *ids,
                          size_t n,
                          const float *gradients,
                          int64_t *ticket,
                          struct slurmdl_error *err)
{
    return rows (ps,
                 table,
                 PS_PUSH_ROWS,
                 ids,
                 n,
                 gradients ? gradients : (const float *)(const void *)ids,
                 NULL,
                 ticket,
                 err);
}

int slurmdl_ps_pull_rows (struct slurmdl_ps *ps,
                          int table,
                          const uint64_t *ids,
                          size_t n,
                          float *out,
                          int64_t *ticket,
                          struct slurmdl_error *err)
{
    return rows (ps, table, PS_PULL_ROWS, ids, n, NULL, out, ticket, err);
}

/* ---- tables ---- */

static int make_spec (const struct slurmdl_ps_table *t,
                      struct ps_spec *s,
                      struct slurmdl_error *err)
{
    memset (s, 0, sizeof (*s));
    errno = EINVAL;
    if (!t->name || strlen (t->name) >= sizeof (s->name)
        || !tensor_name_ok (t->name))
        return errorf (err,
                       "'%.64s' is not a name of a table: at most 63 letters, "
                       "digits, '_', '.', '-' and '/'",
                       t->name ? t->name : "");
    if ((t->n > 0) == (t->row > 0) || t->n > UINT64_MAX / 64
        || t->row >= 1 << 24)
        return errorf (err, "table %s: give n or row", t->name);
    if ((unsigned)t->rule > SLURMDL_PS_ADAM)
        return errorf (err, "table %s: no rule %d", t->name, (int)t->rule);
    snprintf (s->name, sizeof (s->name), "%s", t->name);
    s->n = t->n;
    s->row = t->row;
    s->rule = (uint32_t)t->rule;
    s->seed = t->seed;
    s->rate = t->rate;
    s->momentum = t->momentum;
    s->decay = t->decay;
    s->beta1 = t->beta1 != 0 ? t->beta1 : 0.9;
    s->beta2 = t->beta2 != 0 ? t->beta2 : 0.999;
    s->epsilon = t->epsilon != 0 ? t->epsilon : 1e-8;
    s->low = t->low;
    s->high = t->high;
    return 0;
}

static int
add_table (struct ps_client *c, const struct slurmdl_ps_table *t, uint64_t key)
{
    size_t n = c->ntables + 1;
    void *tables = realloc (c->tables, n * sizeof (*c->tables));
    void *keys;

    if (!tables)
        return -1;
    c->tables = tables;
    if (!(keys = realloc (c->keys, n * sizeof (*c->keys))))
        return -1;
    c->keys = keys;
    c->tables[c->ntables] = *t;
    c->tables[c->ntables].name = NULL;
    c->keys[c->ntables++] = key;
    return 0;
}

static int declare (struct ps_call *c, const struct ps_spec *s, bool values)
{
    for (long i = 0; i < c->ps->servers; i++) {
        struct ps_record *r = psrecord_create (c->ps, PS_DECLARE, sizeof (*s));
        if (!r)
            return -1;
        memcpy (r->own, s, sizeof (*s));
        r->h.count = values;
        add (c, i, r);
    }
    return 0;
}

int slurmdl_ps_table (struct slurmdl_ps *ps,
                      const struct slurmdl_ps_table *t,
                      const float *initial,
                      struct slurmdl_error *err)
{
    struct ps_call c = { .ps = ps, .table = t, .kind = PS_DECLARE };
    struct ps_spec s;

    if (psclient_ready (ps, err) < 0 || make_spec (t, &s, err) < 0)
        return -1;
    c.key = ps_key (s.name);
    if (!(c.ticket = psticket_create (ps))
        || declare (&c, &s, initial && t->n) < 0)
        return not_sent (ps, err);
    if (slurmdl_ps_wait (ps, c.ticket->id, err) < 0)
        return -1;
    if (initial && t->n && ps->index == 0) {
        c.kind = PS_INITIAL;
        if (!(c.ticket = psticket_create (ps)) || send_dense (&c, initial) < 0)
            return not_sent (ps, err);
        if (slurmdl_ps_wait (ps, c.ticket->id, err) < 0)
            return -1;
    }
    if (add_table (ps->client, t, c.key) < 0)
        return not_sent (ps, err);
    return (int)ps->client->ntables - 1;
}

int slurmdl_ps_rate (struct slurmdl_ps *ps,
                     int table,
                     double rate,
                     struct slurmdl_error *err)
{
    struct ps_call c = { .ps = ps, .kind = PS_RATE };

    if (psclient_ready (ps, err) < 0)
        return -1;
    errno = EINVAL;
    if (table < 0 || (size_t)table >= ps->client->ntables)
        return errorf (err, "there is no table %d", table);
    c.key = ps->client->keys[table];
    for (long i = 0; i < ps->servers; i++) {
        struct ps_record *r = psrecord_create (ps, PS_RATE, sizeof (rate));
        if (!r)
            return not_sent (ps, err);
        memcpy (r->own, &rate, sizeof (rate));
        add (&c, i, r);
    }
    return pslinks_pump (ps, psclient_all_sent, 0, err);
}
