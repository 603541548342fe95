/* SPDX-License-Identifier: Apache-2.0 */
/* Elastic training: continue when ranks are lost or others join. */
#include "runtime/comm/elastic/elastic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/comm/bootstrap/tcp.h"

struct slurmdl_elastic *slurmdl_elastic_open (const struct slurmdl_elastic_options *o,
                                              struct slurmdl_error *err)
{
    struct slurmdl_elastic *e = calloc (1, sizeof (*e));

    error_clear (err);
    if (!e) {
        errorf (err, "out of memory");
        return NULL;
    }
    if (membership_open (&e->membership, o, err) == 0)
        return e;
    free (e);
    return NULL;
}

/* ---- a generation ---- */

/* After an error, tell the other ranks so that none waits for us.  Do not wait long
 * for a rank whose host is gone.
 */
static void leave_generation (struct slurmdl_elastic *e)
{
    long silent = e->comm ? mesh_unreachable (e->comm->mesh) : -1;

    if (silent >= 0 && !e->membership.by_hand) {
        e->membership.self.silent = e->membership.generation->members[silent].self.nonce;
        e->membership.self.isolated = membership_is_isolated (&e->membership);
    }
    if (e->comm && e->broken)
        slurmdl_comm_abort (e->comm, "it forms a new world");
    slurmdl_comm_close (e->comm, NULL);
    e->comm = NULL;
}

static int open_generation (struct slurmdl_elastic *e, struct slurmdl_error *err)
{
    bool heard = e->membership.rank == 0;
    struct boot_place p;
    struct boot *b;

    membership_boot_place (&e->membership, &p);
    p.timeout = e->membership.settle;
    p.heard = &heard;
    b = boot_open_place (&p, err);
    if (!b) {
        e->membership.self.outcome = heard ? OUTCOME_TOLD : OUTCOME_ALONE;
        e->membership.self.isolated = membership_is_isolated (&e->membership);
    }
    if (p.listener.n > 0 && p.size > 1)
        e->membership.listener.n = 0;
    if (b)
        e->comm = comm_open_boot (b, NULL, err);
    if (!e->comm)
        return -1;
    mesh_set_timeout (e->comm->mesh, e->membership.wait);
    e->membership.penalty = 0;
    e->commits = 0;
    return 0;
}

static void write_report (struct slurmdl_elastic *e, double begin)
{
    const struct generation *w = e->membership.generation;

    e->report = (struct slurmdl_elastic_world){
        .generation = (int64_t)w->number,
        .size = w->size,
        .kept = w->kept,
        .lost = w->lost,
        .left = w->left,
        .seconds = monotonic () - begin,
    };
}

/* If a rank was lost before the generation was complete, form the next one. */
static int form_next_generation (struct slurmdl_elastic *e, struct slurmdl_error *err)
{
    struct slurmdl_error why;
    double begin = 0;

    do {
        why = (struct slurmdl_error){ "" };
        if (membership_form (&e->membership, err) < 0)
            return -1;
        /* waiting to be admitted is no failure, however long it takes */
        if (begin == 0 || e->membership.joining)
            begin = e->membership.since;
        if (e->membership.joining)
            for (int i = 0; i < 2; i++)
                slot_clear (&e->slots[i]);
        if (open_generation (e, &why) == 0) {
            if (e->membership.rank == 0)
                membership_clean (&e->membership);
            write_report (e, begin);
            ring_find (e);
            return 0;
        }
    } while (monotonic () - begin < e->membership.timeout);
    return errorf (err, "%s", why.text);
}

/* Ranks started by hand are not restarted, and nobody knows which of them are
 * left.  So several of them form a world only once.
 */
static int form_by_hand (struct slurmdl_elastic *e, struct slurmdl_error *err)
{
    double begin = monotonic ();

    if (e->report.size > 1) {
        errno = ENOTCONN;
        return errorf (err, "ranks that were started by hand cannot continue when one is lost: "
                            "start them with dl elastic or srun, or "
                            "set DL_ELASTIC_DIR to a folder that all of them see");
    }
    if (!(e->comm = slurmdl_comm_open (NULL, err)))
        return -1;
    if (membership_of_comm (&e->membership, e->comm, err) < 0) {
        slurmdl_comm_close (e->comm, NULL);
        e->comm = NULL;
        return -1;
    }
    e->commits = 0;
    write_report (e, begin);
    ring_find (e);
    return 0;
}

struct slurmdl_comm *slurmdl_elastic_form (struct slurmdl_elastic *e, struct slurmdl_error *err)
{
    leave_generation (e);
    e->ended = false;
    error_clear (err);
    e->broken = (e->membership.by_hand ? form_by_hand (e, err) : form_next_generation (e, err)) < 0;
    e->membership.self.request = 0;
    return e->comm;
}

void slurmdl_elastic_world (const struct slurmdl_elastic *e, struct slurmdl_elastic_world *world)
{
    *world = e->report;
}

int slurmdl_elastic_close (struct slurmdl_elastic *e)
{
    if (!e)
        return 0;
    if (e->ended && !e->broken)
        membership_leave (&e->membership);
    leave_generation (e);
    membership_close (&e->membership);
    for (size_t i = 0; i < e->wants.n; i++)
        if (e->wants.list[i].kind == PIECE_STATE)
            free (e->wants.list[i].data);
    free (e->wants.list);
    for (int i = 0; i < 2; i++)
        slot_clear (&e->slots[i]);
    free (e);
    return 0;
}

/* ---- committed state ---- */

static int bad_argument (struct slurmdl_error *err, const char *name, const char *why)
{
    errno = EINVAL;
    return errorf (err, "'%s': %s", name ? name : "", why);
}

/* Add the piece, replacing one of the same name. */
static int replace_piece (struct slurmdl_elastic *e, const struct elastic_piece *p,
                          struct slurmdl_error *err)
{
    struct elastic_piece *at = pieces_find (&e->wants, p->name);
    struct elastic_piece *list;

    if (at) {
        if (at->kind == PIECE_STATE)
            free (at->data);
        *at = *p;
        return 0;
    }
    list = realloc (e->wants.list, (e->wants.n + 1) * sizeof (*list));
    if (!list)
        return errorf (err, "out of memory");
    e->wants.list = list;
    list[e->wants.n++] = *p;
    return 0;
}

static int fill_piece (struct elastic_piece *p, const char *name, enum slurmdl_type type, int ndims,
                       const uint64_t *dims, struct slurmdl_error *err)
{
    memset (p, 0, sizeof (*p));
    if (!name || !*name || strlen (name) >= sizeof (p->name))
        return bad_argument (err, name, "the name must be 1 to 127 bytes");
    if (slurmdl_type_size (type) == 0)
        return bad_argument (err, name, "no such element type");
    if (ndims < 0 || ndims > DIMS_MAX)
        return bad_argument (err, name, "a tensor must have 0 to 8 dimensions");
    strcpy (p->name, name);
    p->type = type;
    p->box = slab_whole (ndims, dims);
    for (int i = 0; i < ndims; i++)
        p->dims[i] = dims[i];
    return 0;
}

static int finish_piece (struct slurmdl_elastic *e, struct elastic_piece *p, void *data,
                         struct slurmdl_error *err)
{
    if (__builtin_mul_overflow (slab_elements (&p->box), slurmdl_type_size (p->type), &p->bytes)
        || p->bytes > SIZE_MAX / 2)
        return bad_argument (err, p->name, "it is too large");
    if (p->bytes && !data)
        return bad_argument (err, p->name, "there is no memory");
    p->data = data;
    return replace_piece (e, p, err);
}

int slurmdl_elastic_protect (struct slurmdl_elastic *e, const char *name, enum slurmdl_type type,
                             int ndims, const uint64_t *dims, void *data, struct slurmdl_error *err)
{
    struct elastic_piece p;

    error_clear (err);
    if (fill_piece (&p, name, type, ndims, dims, err) < 0)
        return -1;
    p.kind = PIECE_WHOLE;
    return finish_piece (e, &p, data, err);
}

int slurmdl_elastic_protect_shard (struct slurmdl_elastic *e, const char *name,
                                   enum slurmdl_type type, int ndims, const uint64_t *global,
                                   const uint64_t *offset, const uint64_t *local, void *data,
                                   struct slurmdl_error *err)
{
    struct elastic_piece p;

    error_clear (err);
    if (fill_piece (&p, name, type, ndims, global, err) < 0)
        return -1;
    p.kind = PIECE_SHARD;
    for (int i = 0; i < ndims; i++) {
        p.box.offset[i] = offset[i];
        p.box.dims[i] = local[i];
    }
    if (ndims < 1 || !slab_fits (&p.box, p.dims))
        return bad_argument (err, name, "the slab is not in the tensor");
    return finish_piece (e, &p, data, err);
}

int slurmdl_elastic_state (struct slurmdl_elastic *e, const char *name, const void *bytes, size_t n,
                           struct slurmdl_error *err)
{
    uint64_t dims = n;
    struct elastic_piece p;
    void *copy;

    error_clear (err);
    if (fill_piece (&p, name, SLURMDL_U8, 1, &dims, err) < 0)
        return -1;
    p.kind = PIECE_STATE;
    if (!(copy = malloc (n + 1)))
        return errorf (err, "out of memory");
    if (n)
        memcpy (copy, bytes, n);
    if (finish_piece (e, &p, copy, err) == 0)
        return 0;
    free (copy);
    return -1;
}

int slurmdl_elastic_read_state (struct slurmdl_elastic *e, const char *name, void **bytes,
                                size_t *n)
{
    const struct elastic_piece *p = name ? pieces_find (&e->wants, name) : NULL;

    if (!p || p->kind != PIECE_STATE) {
        errno = ENOENT;
        return -1;
    }
    if (!(*bytes = malloc (p->bytes + 1)))
        return -1;
    memcpy (*bytes, p->data, p->bytes);
    *n = p->bytes;
    return 0;
}

int slurmdl_elastic_commit (struct slurmdl_elastic *e, int64_t step, struct slurmdl_error *err)
{
    long request;

    error_clear (err);
    errno = ENOTCONN;
    if (e->broken || !e->comm)
        return errorf (err, "call slurmdl_elastic_form() first");
    request = e->membership.rank == 0 ? membership_request (&e->membership) : 0;
    e->ended = false;
    if (state_commit (e, step, &request, err) < 0) {
        e->broken = true;
        return -1;
    }
    e->ended = true;
    e->membership.self.request = request;
    return request > 0;
}
