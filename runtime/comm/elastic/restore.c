/* SPDX-License-Identifier: Apache-2.0 */
/* Restore the training state from what the ranks have of it. */
#include "runtime/comm/elastic/directory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"

/* From whom the k-th rank that lacks it gets it: all that have it send. */
static long giver (const struct directory *d, long k)
{
    return d->have[k % d->nhave];
}

static int send_list (struct slurmdl_elastic *e, long to, const struct slot *s,
                      struct slurmdl_error *err)
{
    uint64_t n = s->own.n;

    if (mesh_send (e->comm->mesh, to, &n, sizeof (n), err) < 0)
        return -1;
    return n == 0 ? 0 : mesh_send (e->comm->mesh, to, s->own.list, n * sizeof (*s->own.list), err);
}

static int recv_list (struct slurmdl_elastic *e, long from, struct pieces *list,
                      struct slurmdl_error *err)
{
    uint64_t n = 0;

    if (mesh_recv (e->comm->mesh, from, &n, sizeof (n), err) < 0)
        return -1;
    if (n == 0)
        return 0;
    if (n > 1 << 24 || !(list->list = calloc (n, sizeof (*list->list))))
        return errorf (err, "out of memory");
    list->n = n;
    if (mesh_recv (e->comm->mesh, from, list->list, n * sizeof (*list->list), err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        list->list[i].data = NULL;
    return 0;
}

static int share_lists (struct slurmdl_elastic *e, const struct directory *d, struct pieces *list,
                        struct slurmdl_error *err)
{
    const struct slot *s = elastic_slot (e, d->id);

    for (long k = 0; k < d->nlack; k++) {
        if (giver (d, k) == e->membership.rank && send_list (e, d->lack[k], s, err) < 0)
            return -1;
        if (d->lack[k] == e->membership.rank && recv_list (e, giver (d, k), list, err) < 0)
            return -1;
    }
    return 0;
}

static bool is_like (const struct elastic_piece *a, const struct elastic_piece *b)
{
    return a && a->kind == b->kind && a->type == b->type && a->box.ndims == b->box.ndims
           && !memcmp (a->dims, b->dims, sizeof (a->dims));
}

/* Whether each tensor that is wanted was committed, in this shape. */
static int check_wants (const struct slurmdl_elastic *e, const struct pieces *committed,
                        struct slurmdl_error *err)
{
    for (size_t i = 0; i < e->wants.n; i++) {
        const struct elastic_piece *p = &e->wants.list[i];
        if (p->kind != PIECE_STATE && !is_like (pieces_find (committed, p->name), p)) {
            errno = EINVAL;
            return errorf (err, "'%s' was not committed with this type and shape", p->name);
        }
    }
    return 0;
}

/* All fail if one does. */
static int agree (struct slurmdl_elastic *e, int rv, struct slurmdl_error *err)
{
    int32_t bad = rv < 0;

    if (slurmdl_allreduce (e->comm, &bad, &bad, 1, SLURMDL_I32, SLURMDL_MAX, err) < 0)
        return -1;
    if (!bad)
        return 0;
    errno = EINVAL;
    return errorf (err, "another rank protects other memory than was committed");
}

/* The program's memory, or a state's bytes, from a committed piece. */
static int put_piece (struct slurmdl_elastic *e, const struct elastic_piece *committed,
                      const void *data, struct slurmdl_error *err)
{
    struct elastic_piece *want = pieces_find (&e->wants, committed->name);

    if (committed->kind == PIECE_STATE) {
        return slurmdl_elastic_state (e, committed->name, data, committed->bytes, err);
    }
    if (!want || want->bytes == 0)
        return 0;
    if (piece_store (want, data) < 0)
        return errorf (err, "%s: cannot copy it to the device", want->name);
    return 0;
}

static int take (struct slurmdl_elastic *e, long from, const struct elastic_piece *p,
                 struct slurmdl_error *err)
{
    void *data = malloc (p->bytes + 1);
    int rv;

    if (!data)
        return errorf (err, "out of memory");
    rv = p->bytes ? mesh_recv (e->comm->mesh, from, data, p->bytes, err) : 0;
    if (rv == 0)
        rv = put_piece (e, p, data, err);
    free (data);
    return rv;
}

static int share_piece (struct slurmdl_elastic *e, const struct directory *d,
                        const struct elastic_piece *p, struct slurmdl_error *err)
{
    for (long k = 0; k < d->nlack; k++) {
        if (giver (d, k) == e->membership.rank && p->bytes
            && mesh_send (e->comm->mesh, d->lack[k], p->data, p->bytes, err) < 0)
            return -1;
        if (d->lack[k] == e->membership.rank && take (e, giver (d, k), p, err) < 0)
            return -1;
    }
    return 0;
}

static int share_all (struct slurmdl_elastic *e, const struct directory *d,
                      const struct pieces *list, bool have, struct slurmdl_error *err)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->list[i].kind == PIECE_SHARD)
            continue;
        if (share_piece (e, d, &list->list[i], err) < 0)
            return -1;
        if (have && put_piece (e, &list->list[i], list->list[i].data, err) < 0)
            return -1;
    }
    return 0;
}

/* Forget all but that commit. */
static void keep_only (struct slurmdl_elastic *e, uint64_t id)
{
    for (int i = 0; i < 2; i++)
        if (id && e->slots[i].id == id)
            e->newest = i;
        else
            slot_clear (&e->slots[i]);
}

static int fill (struct slurmdl_elastic *e, struct directory *d, struct slurmdl_error *err)
{
    struct slot *s = elastic_slot (e, d->id);
    struct pieces got = { NULL, 0 };
    const struct pieces *list = s ? &s->own : &got;
    int rv = share_lists (e, d, &got, err);

    if (rv == 0)
        rv = agree (e, check_wants (e, list, err), err);
    if (rv == 0)
        rv = share_all (e, d, list, s != NULL, err);
    if (rv == 0)
        rv = restore_slabs (e, d, err);
    pieces_free (&got);
    return rv;
}

int slurmdl_elastic_restore (struct slurmdl_elastic *e, int64_t *step, struct slurmdl_error *err)
{
    struct directory d = { 0 };
    long request = 0;
    int rv = -1;

    error_clear (err);
    errno = ENOTCONN;
    if (e->broken || !e->comm)
        return errorf (err, "call slurmdl_elastic_form() first");
    e->ended = false;
    if (directory_gather (e, &d, err) < 0 || directory_check (&d, err) < 0)
        goto done;
    rv = directory_choose (e, &d, err);
    if (rv == 1)
        rv = fill (e, &d, err) < 0 ? -1 : 1;
    if (rv >= 0)
        keep_only (e, d.id);
    if (rv == 1 && state_commit (e, d.step, &request, err) < 0)
        rv = -1;
    if (rv == 1)
        *step = d.step;
done:
    e->broken |= rv < 0 && errno != EINVAL;
    directory_free (&d);
    return rv;
}
