/* SPDX-License-Identifier: Apache-2.0 */
/* The saves of a server: which there are, and how they are restored. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/ps/save.h"

enum { LOOK_MS = 500, SLAB_BYTES = 32 << 20 };

/* ---- saved ---- */

uint32_t psstore_old (struct ps_server *s, struct ps_saved *old)
{
    struct ps_entry *e = s->entry;
    uint32_t n = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < e->nsaved; i++)
        if (e->saved[i].clock < s->saved || e->nsaved - i >= PS_SAVES)
            old[n++] = e->saved[i];
        else
            e->saved[kept++] = e->saved[i];
    e->nsaved = kept;
    return n;
}

static void
remove_file (const struct slurmdl_ps *ps, long server, const struct ps_saved *v)
{
    char path[PATH_MAX];

    unlink (psregistration_save_path (path, sizeof (path), ps->dir, server, v));
}

void psstore_remove (const struct slurmdl_ps *ps, const struct ps_saved *v)
{
    const struct ps_saved *theirs;
    struct ps_entry e;
    uint64_t number;

    remove_file (ps, ps->index, v);
    for (long i = ps->servers; ps->index == 0 && i < v->servers; i++)
        if (psregistration_newest (ps->dir, "server", i, &number, &e) == 1
            && (theirs = psregistration_saved (&e, v->clock, v->servers)))
            remove_file (ps, i, theirs);
}

/* A worker that cannot reach this server has given it up; others can. */
static bool
is_contested (struct ps_server *s, const struct ps_entry *e, uint64_t number)
{
    if (e->state != PS_LOST || e->claim != s->entry->claim
        || !psserver_sees_workers (s))
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
        rv = psregistration_put (
            ps->dir, "server", ps->index, ps->number + 1, s->entry);
    while (rv > 0
           && psregistration_newest (ps->dir, "server", ps->index, &number, &e)
                  == 1
           && is_contested (s, &e, number));
    if (rv == 0)
        ps->number++;
    if (rv < 0)
        errorf (err, "%.150s: cannot write: %s", ps->name, strerror (errno));
    if (rv <= 0)
        return rv;
    errno = ESTALE;
    return errorf (err,
                   e.state == PS_LOST && e.claim == s->entry->claim
                       ? "server %ld was declared lost by a worker"
                       : "another process has taken the place of server %ld",
                   ps->index);
}

int psstore_saved (struct ps_server *s,
                   const struct ps_saved *saved,
                   struct slurmdl_error *err)
{
    s->entry->saved[s->entry->nsaved++] = *saved;
    if (put_entry (s, err) < 0)
        return -1;
    s->ps->stats.saves++;
    s->looked = 0;
    return 0;
}

/* ---- restore ---- */

/* What server 'server' of 'servers' has saved. */
struct ps_source {
    struct slurmdl_checkpoint *c;
    long server, servers;
};

/* The arrays of a table in memory, as if they were a copy. */
static int arrays_of (const struct ps_table *t, struct ps_array *a)
{
    struct ps_copy c = { .spec = t->spec,
                         .slots = t->rule->slots,
                         .n = t->n,
                         .rows = t->rows,
                         .width = t->width,
                         .times = t->times,
                         .ids = t->ids };

    memcpy (c.value, t->value, sizeof (c.value));
    return pssave_arrays (&c, a);
}

static size_t row_size (const struct ps_array *a)
{
    return a->size * (a->width ? a->width : 1);
}

static int read_slab (const struct ps_source *from,
                      const struct ps_table *t,
                      const struct ps_array *a,
                      uint64_t offset,
                      uint64_t n,
                      void *data,
                      struct slurmdl_error *err)
{
    struct slurmdl_tensor wanted;
    struct slurmdl_tensor there;
    uint64_t at[2] = { offset, 0 };
    uint64_t dims[2] = { n, a->width };
    int64_t i;

    pssave_describe (&t->spec, a, &wanted);
    i = slurmdl_checkpoint_find_tensor (from->c, wanted.name);
    if (i < 0 || slurmdl_checkpoint_info (from->c, (size_t)i, &there) < 0
        || there.type != wanted.type || there.ndims != wanted.ndims
        || there.dims[1] != wanted.dims[1] || offset + n > there.dims[0]) {
        errno = EBADMSG;
        return errorf (err, "%s is not as it was saved", wanted.name);
    }
    return slurmdl_checkpoint_read (from->c, wanted.name, at, dims, data, err);
}

/* The elements that both servers have; ranges begin with a block. */
static int restore_dense (const struct ps_server *s,
                          const struct ps_source *from,
                          struct ps_table *t,
                          struct slurmdl_error *err)
{
    struct ps_array a[PS_ARRAYS];
    uint64_t n = t->spec.n;
    uint64_t theirs, has, mine, have, lo, hi;
    int narrays = arrays_of (t, a);

    ps_shard (t->key, n, from->server, from->servers, &theirs, &has);
    ps_shard (t->key, n, s->ps->index, s->ps->servers, &mine, &have);
    lo = theirs > mine ? theirs : mine;
    hi = theirs + has < mine + have ? theirs + has : mine + have;
    for (int i = 0; lo < hi && i < narrays; i++) {
        uint64_t each = a[i].type == SLURMDL_U32 ? PS_BLOCK : 1;
        char *to = (char *)a[i].data + (lo - mine) / each * a[i].size;
        if (read_slab (from,
                       t,
                       &a[i],
                       (lo - theirs) / each,
                       (hi - lo + each - 1) / each,
                       to,
                       err)
            < 0)
            return -1;
    }
    return 0;
}

/* Those of 'n' rows at 'offset' that are this server's. */
static int restore_some (const struct ps_server *s,
                         const struct ps_source *from,
                         struct ps_table *t,
                         uint64_t offset,
                         uint64_t n,
                         uint64_t *ids,
                         char *slab,
                         struct slurmdl_error *err)
{
    struct ps_array a[PS_ARRAYS];
    uint64_t first = t->rows;
    uint64_t mine = 0;
    int narrays = arrays_of (t, a);

    if (read_slab (from, t, &a[narrays - 1], offset, n, ids, err) < 0)
        return -1;
    for (uint64_t i = 0; i < n; i++)
        mine += ps_server_of (ids[i], s->ps->servers) == s->ps->index;
    if (mine == 0)
        return 0;
    if (ps_table_reserve (t, first + mine) < 0)
        return errorf (err, "out of memory");
    narrays = arrays_of (t, a);
    for (int k = 0; k < narrays; k++) {
        size_t size = row_size (&a[k]);
        char *to = (char *)a[k].data + first * size;
        if (read_slab (from, t, &a[k], offset, n, slab, err) < 0)
            return -1;
        for (uint64_t i = 0; i < n; i++)
            if (ps_server_of (ids[i], s->ps->servers) == s->ps->index) {
                memcpy (to, slab + i * size, size);
                to += size;
            }
    }
    return 0;
}

static int restore_rows (const struct ps_server *s,
                         const struct ps_source *from,
                         struct ps_table *t,
                         uint64_t rows,
                         struct slurmdl_error *err)
{
    size_t size = t->width * sizeof (float) + sizeof (uint64_t);
    uint64_t each = SLAB_BYTES / size + 1;
    uint64_t *ids = malloc (each * sizeof (*ids));
    char *slab = malloc (each * size);
    int rv = ids && slab ? 0 : errorf (err, "out of memory");

    for (uint64_t at = 0; rv == 0 && at < rows; at += each)
        rv = restore_some (s,
                           from,
                           t,
                           at,
                           rows - at < each ? rows - at : each,
                           ids,
                           slab,
                           err);
    free (ids);
    free (slab);
    return rv < 0 ? -1 : ps_table_index (t);
}

static struct ps_table *find_table (struct ps_server *s,
                                    const struct ps_spec *spec)
{
    struct ps_table *t = psserver_table (s, ps_key (spec->name));

    if (t)
        return t;
    t = ps_table_create (spec, s->ps->index, s->ps->servers, s->ps->workers);
    if (psserver_add_table (s, t) == 0)
        return t;
    ps_table_destroy (t);
    return NULL;
}

static int restore_table (struct ps_server *s,
                          const struct ps_source *from,
                          const struct ps_about_table *about,
                          struct slurmdl_error *err)
{
    struct ps_table *t;

    if (!psserver_is_good_spec (&about->spec)) {
        errno = EBADMSG;
        return -1;
    }
    if (!(t = find_table (s, &about->spec)))
        return errorf (err, "out of memory");
    if (about->missing)
        t->awaited = true;
    if (about->missing || !about->rows)
        return 0;
    return ps_table_is_dense (t) ? restore_dense (s, from, t, err)
                                 : restore_rows (s, from, t, about->rows, err);
}

static int restore_tables (struct ps_server *s,
                           const struct ps_source *from,
                           int64_t clock,
                           struct slurmdl_error *err)
{
    int64_t at = slurmdl_checkpoint_find_tensor (from->c, PS_ABOUT);
    struct ps_about_table each;
    struct ps_about about;
    struct slurmdl_tensor tensor;
    unsigned char *bytes = NULL;
    int rv = -1;

    errno = EBADMSG;
    if (at < 0 || slurmdl_checkpoint_info (from->c, (size_t)at, &tensor) < 0
        || tensor.bytes < sizeof (about) || !(bytes = malloc (tensor.bytes))
        || slurmdl_checkpoint_read (from->c, PS_ABOUT, NULL, NULL, bytes, err)
               < 0)
        goto out;
    memcpy (&about, bytes, sizeof (about));
    errno = EBADMSG;
    if (about.version != PS_VERSION || about.servers != from->servers
        || about.server != from->server || about.clock != clock
        || tensor.bytes != sizeof (about) + about.ntables * sizeof (each))
        goto out;
    for (uint32_t i = 0; i < about.ntables; i++) {
        memcpy (
            &each, bytes + sizeof (about) + i * sizeof (each), sizeof (each));
        if (restore_table (s, from, &each, err) < 0)
            goto out;
    }
    rv = 0;
out:
    if (rv < 0)
        errorf (err, "this is not what a server of this group has saved");
    free (bytes);
    return rv;
}

static int restore_file (struct ps_server *s,
                         const struct ps_saved *saved,
                         long server,
                         struct slurmdl_error *err)
{
    char path[PATH_MAX];
    struct ps_source from = { .server = server,
                              .servers = (long)saved->servers };
    int rv;

    psregistration_save_path (path, sizeof (path), s->ps->dir, server, saved);
    if (!(from.c = slurmdl_checkpoint_open (path, err)))
        return -1;
    rv = restore_tables (s, &from, saved->clock, err);
    slurmdl_checkpoint_close (from.c);
    return rv;
}

/* Of the same number of servers the own file is enough. */
static int restore_files (struct ps_server *s,
                          int64_t clock,
                          int64_t servers,
                          struct slurmdl_error *err)
{
    const struct ps_saved *saved;
    struct ps_entry e;
    uint64_t number;

    for (long i = 0; i < servers; i++) {
        if (servers == s->ps->servers && i != s->ps->index)
            continue;
        if (psregistration_newest (s->ps->dir, "server", i, &number, &e) != 1
            || !(saved = psregistration_saved (&e, clock, servers))) {
            errno = ESTALE;
            return errorf (err,
                           "server %ld does not have the save of iteration "
                           "%" PRId64 " any more",
                           i,
                           clock);
        }
        if (restore_file (s, saved, i, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < s->ntables; i++)
        if (!s->tables[i]->awaited)
            ps_table_initial (s->tables[i], 0, NULL, 0);
    return 0;
}

/* Saves that not all have are forgotten. */
static void forget_saves (struct ps_server *s, int64_t clock, int64_t servers)
{
    struct ps_entry *e = s->entry;
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->nsaved; i++)
        if (e->saved[i].clock <= clock && s->ps->index < servers)
            e->saved[n++] = e->saved[i];
    e->nsaved = n;
}

int psstore_restore (struct ps_server *s, struct slurmdl_error *err)
{
    int64_t servers = 0;
    int64_t clock = psregistration_common (s->ps->dir, false, &servers);

    forget_saves (s, clock, servers);
    if (clock > 0 && restore_files (s, clock, servers, err) < 0)
        return -1;
    s->done = clock > 0 ? clock : 0;
    for (long i = 0; i < s->ps->workers; i++)
        s->workers[i].clock = s->workers[i].last_clock = s->done;
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
    int64_t servers;
    int64_t clock;

    if (monotonic () - s->looked < LOOK_MS / 1000.0)
        return 0;
    s->looked = monotonic ();
    if (psregistration_newest (ps->dir, "server", ps->index, &number, &e) == 1
        && number > ps->number && put_entry (s, err) < 0)
        return -1;
    if (s->entry->nsaved
        && s->entry->saved[s->entry->nsaved - 1].clock > s->saved) {
        clock = psregistration_common (ps->dir, true, &servers);
        s->saved = clock > s->saved ? clock : s->saved;
        s->looked -= 0.45; /* the others are about to save */
    }
    return 0;
}
