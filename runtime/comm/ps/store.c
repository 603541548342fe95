/* SPDX-License-Identifier: Apache-2.0 */
/* A server saves its tables, and restores them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/clock.h"
#include "runtime/comm/ps/server.h"
#include "runtime/error.h"

enum { FIELD = 16, LOOK_MS = 500 };

/* ---- the arrays of a table ---- */

struct array {
    char field[FIELD];
    enum slurmdl_type type;
    void **data;
    uint64_t rows, width; /* width 0: one dimension */
    size_t size;
};

static int arrays_of (struct ps_table *t, struct array *a)
{
    bool dense = ps_table_is_dense (t);
    uint64_t rows = dense ? t->n : t->rows;
    uint64_t width = dense ? 0 : t->width;
    int n = 0;

    for (unsigned i = 0; i <= t->rule->slots; i++, n++) {
        a[n] = (struct array){ "values", SLURMDL_F32, (void **)&t->value[i],
                               rows,     width,       sizeof (float) };
        if (i)
            snprintf (a[n].field, FIELD, "slot%u", i);
    }
    a[n++] = (struct array){ "times", SLURMDL_U32, (void **)&t->times,
                             t->rows, 0,           sizeof (*t->times) };
    if (!dense)
        a[n++] = (struct array){ "ids",   SLURMDL_U64, (void **)&t->ids,
                                 t->rows, 0,           sizeof (*t->ids) };
    return n;
}

enum { ARRAYS = PS_SLOTS + 3 };

static void describe (const struct ps_table *t,
                      const struct array *a,
                      struct slurmdl_tensor *tensor)
{
    memset (tensor, 0, sizeof (*tensor));
    snprintf (tensor->name,
              sizeof (tensor->name),
              "ps/%s/%s",
              t->spec.name,
              a->field);
    tensor->type = a->type;
    tensor->ndims = a->width ? 2 : 1;
    tensor->dims[0] = a->rows;
    tensor->dims[1] = a->width;
}

/* ---- save ---- */

struct ps_about {
    uint32_t version, ntables;
    int64_t servers, server, clock;
};

static int save_about (struct ps_server *s,
                       struct slurmdl_writer *w,
                       int64_t clock,
                       struct slurmdl_error *err)
{
    size_t each = sizeof (struct ps_spec) + sizeof (uint64_t);
    size_t n = sizeof (struct ps_about) + s->ntables * each;
    struct slurmdl_tensor t = {
        .name = "ps", .type = SLURMDL_U8, .ndims = 1, .dims = { n }, .state = 1
    };
    unsigned char *bytes = calloc (1, n);
    struct ps_about about = {
        PS_VERSION, (uint32_t)s->ntables, s->ps->servers, s->ps->index, clock
    };
    int rv;

    if (!bytes)
        return errorf (err, "out of memory");
    snprintf (t.name, sizeof (t.name), "ps-about");
    memcpy (bytes, &about, sizeof (about));
    for (size_t i = 0; i < s->ntables; i++) {
        unsigned char *at = bytes + sizeof (about) + i * each;
        memcpy (at, &s->tables[i]->spec, sizeof (struct ps_spec));
        memcpy (at + sizeof (struct ps_spec),
                &s->tables[i]->rows,
                sizeof (uint64_t));
    }
    rv = slurmdl_writer_add (w, &t, bytes, err);
    free (bytes);
    return rv;
}

static int save_table (struct ps_table *t,
                       struct slurmdl_writer *w,
                       struct slurmdl_error *err)
{
    struct array a[ARRAYS];
    struct slurmdl_tensor tensor;
    int n = arrays_of (t, a);

    for (int i = 0; i < n; i++) {
        describe (t, &a[i], &tensor);
        if (a[i].rows && slurmdl_writer_add (w, &tensor, *a[i].data, err) < 0)
            return -1;
    }
    return 0;
}

static int
write_file (struct ps_server *s, const char *path, struct slurmdl_error *err)
{
    struct slurmdl_writer *w = slurmdl_writer_open (path, s->cut, err);

    if (!w)
        return -1;
    if (save_about (s, w, s->cut, err) < 0)
        goto fail;
    for (size_t i = 0; i < s->ntables; i++)
        if (save_table (s->tables[i], w, err) < 0)
            goto fail;
    return slurmdl_writer_commit (w, err);
fail:
    slurmdl_writer_abort (w);
    return -1;
}

/* What is older than the newest that all have is not needed. */
static void remove_old (struct ps_server *s)
{
    struct ps_entry *e = s->entry;
    char path[PATH_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->nsaved; i++)
        if (e->saved[i].clock < s->saved || e->nsaved - i >= PS_SAVES)
            unlink (psplace_save_path (
                path, sizeof (path), s->ps->dir, s->ps->index, &e->saved[i]));
        else
            e->saved[n++] = e->saved[i];
    e->nsaved = n;
}

/* A worker that cannot reach this server has given it up; others can. */
static bool
is_contested (struct ps_server *s, const struct ps_entry *e, uint64_t number)
{
    if (e->state != PS_LOST || e->claim != s->entry->claim
        || !pspeople_are_here (s))
        return false;
    s->ps->number = number;
    return true;
}

static int put_entry (struct ps_server *s, struct slurmdl_error *err)
{
    struct slurmdl_ps *ps = s->ps;
    struct ps_entry e = { .claim = 0 };
    uint64_t number;
    int rv;

    do
        rv = psplace_put (
            ps->dir, "server", ps->index, ps->number + 1, s->entry);
    while (rv > 0
           && psplace_newest (ps->dir, "server", ps->index, &number, &e) == 1
           && is_contested (s, &e, number));
    if (rv == 0)
        ps->number++;
    if (rv < 0)
        errorf (err, "%s: cannot write: %s", ps->dir, strerror (errno));
    if (rv <= 0)
        return rv;
    errno = ESTALE;
    return errorf (err,
                   e.state == PS_LOST && e.claim == s->entry->claim
                       ? "server %ld was given up as lost by a worker"
                       : "another process has taken the place of server %ld",
                   ps->index);
}

int psstore_save (struct ps_server *s, struct slurmdl_error *err)
{
    struct ps_saved saved = { s->cut, s->entry->claim };
    char path[PATH_MAX];

    psplace_save_path (path, sizeof (path), s->ps->dir, s->ps->index, &saved);
    if (write_file (s, path, err) < 0)
        return -1;
    remove_old (s);
    s->entry->saved[s->entry->nsaved++] = saved;
    if (put_entry (s, err) < 0)
        return -1;
    s->ps->stats.saves++;
    s->looked = 0;
    return 0;
}

/* ---- restore ---- */

static int restore_array (struct slurmdl_checkpoint *c,
                          const struct ps_table *t,
                          const struct array *a,
                          struct slurmdl_error *err)
{
    struct slurmdl_tensor tensor;
    struct slurmdl_tensor there;
    int64_t i;

    describe (t, a, &tensor);
    if (!a->rows)
        return 0;
    i = slurmdl_checkpoint_find_tensor (c, tensor.name);
    if (i < 0 || slurmdl_checkpoint_info (c, (size_t)i, &there) < 0
        || there.type != tensor.type || there.dims[0] != tensor.dims[0]) {
        errno = EBADMSG;
        return errorf (err, "%s is not as it was saved", tensor.name);
    }
    return slurmdl_checkpoint_read (c, tensor.name, NULL, NULL, *a->data, err);
}

static int restore_table (struct ps_server *s,
                          struct slurmdl_checkpoint *c,
                          const struct ps_spec *spec,
                          uint64_t rows,
                          struct slurmdl_error *err)
{
    struct ps_table *t =
        ps_table_create (spec, s->ps->index, s->ps->servers, s->ps->workers);
    struct array a[ARRAYS];
    int n;

    if (psapply_add_table (s, t) < 0) {
        ps_table_destroy (t);
        return errorf (err, "out of memory");
    }
    if (!ps_table_is_dense (t) && ps_table_reserve (t, rows) < 0)
        return errorf (err, "out of memory");
    n = arrays_of (t, a);
    for (int i = 0; i < n; i++)
        if (restore_array (c, t, &a[i], err) < 0)
            return -1;
    ps_table_initial (t, 0, NULL, 0);
    return ps_table_is_dense (t) ? 0 : ps_table_index (t);
}

static int restore_tables (struct ps_server *s,
                           struct slurmdl_checkpoint *c,
                           struct slurmdl_error *err)
{
    size_t each = sizeof (struct ps_spec) + sizeof (uint64_t);
    int64_t at = slurmdl_checkpoint_find_tensor (c, "ps-about");
    struct slurmdl_tensor tensor;
    struct ps_about about;
    unsigned char *bytes = NULL;
    struct ps_spec spec;
    uint64_t rows;
    int rv = -1;

    errno = EBADMSG;
    if (at < 0 || slurmdl_checkpoint_info (c, (size_t)at, &tensor) < 0
        || tensor.bytes < sizeof (about) || !(bytes = malloc (tensor.bytes + 1))
        || slurmdl_checkpoint_read (c, "ps-about", NULL, NULL, bytes, err) < 0)
        goto out;
    memcpy (&about, bytes, sizeof (about));
    errno = EBADMSG;
    if (about.version != PS_VERSION || about.servers != s->ps->servers
        || about.server != s->ps->index
        || tensor.bytes != sizeof (about) + about.ntables * each)
        goto out;
    for (uint32_t i = 0; i < about.ntables; i++) {
        memcpy (&spec, bytes + sizeof (about) + i * each, sizeof (spec));
        memcpy (&rows,
                bytes + sizeof (about) + i * each + sizeof (spec),
                sizeof (rows));
        if (restore_table (s, c, &spec, rows, err) < 0)
            goto out;
    }
    rv = 0;
out:
    if (rv < 0)
        errorf (err, "this is not what a server of this group has saved");
    free (bytes);
    return rv;
}

static int
restore_file (struct ps_server *s, const char *path, struct slurmdl_error *err)
{
    struct slurmdl_checkpoint *c = slurmdl_checkpoint_open (path, err);
    int rv;

    if (!c)
        return -1;
    rv = restore_tables (s, c, err);
    slurmdl_checkpoint_close (c);
    return rv;
}

/* Go on from 'clock'; saves that not all have are forgotten. */
static int
choose_save (struct ps_server *s, int64_t clock, struct slurmdl_error *err)
{
    struct ps_entry *e = s->entry;
    char path[PATH_MAX];
    uint32_t n = 0;

    while (n < e->nsaved && e->saved[n].clock <= clock)
        n++;
    e->nsaved = n;
    if (!n)
        return 0;
    psplace_save_path (
        path, sizeof (path), s->ps->dir, s->ps->index, &e->saved[n - 1]);
    if (restore_file (s, path, err) < 0)
        return -1;
    s->done = clock;
    for (long i = 0; i < s->ps->workers; i++)
        s->workers[i].clock = s->workers[i].last_clock = clock;
    return 0;
}

int psstore_restore (struct ps_server *s, struct slurmdl_error *err)
{
    int64_t clock = psplace_common (s->ps->dir, s->ps->servers, false);

    if (choose_save (s, clock, err) < 0)
        return -1;
    s->saved = clock;
    s->entry->state = PS_SERVING;
    return put_entry (s, err);
}

/* ---- now and then ---- */

int psstore_look (struct ps_server *s, struct slurmdl_error *err)
{
    struct slurmdl_ps *ps = s->ps;
    struct ps_entry e;
    uint64_t number;
    int64_t clock;

    if (monotonic () - s->looked < LOOK_MS / 1000.0)
        return 0;
    s->looked = monotonic ();
    if (psplace_newest (ps->dir, "server", ps->index, &number, &e) == 1
        && number > ps->number && put_entry (s, err) < 0)
        return -1;
    if (s->entry->nsaved
        && s->entry->saved[s->entry->nsaved - 1].clock > s->saved) {
        clock = psplace_common (ps->dir, ps->servers, true);
        s->saved = clock > s->saved ? clock : s->saved;
        s->looked -= 0.45; /* the others are about to save */
    }
    return 0;
}
