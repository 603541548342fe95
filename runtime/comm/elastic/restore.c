/* SPDX-License-Identifier: Apache-2.0 */
/* Restore the training state from the parts that the ranks have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/comm/elastic/elastic.h"

/* An entry for what a rank has, or wants (id 0), without the data. */
struct directory_entry {
    uint64_t id;
    int64_t step;
    int64_t rank;
    bool summary; /* the rank has the commit; otherwise a slab of it */
    struct elastic_piece piece;
};

struct directory {
    struct directory_entry *list; /* newest commit first, see compare_entries(); wants at the end */
    size_t n;
    uint64_t id; /* commit that everybody restores; 0: none */
    int64_t step;
    long *have, *lack; /* ranks that have the commit; those that do not */
    long nhave, nlack;
};

/* Whether two entries belong to the same run. */
typedef bool (*same_f) (const struct directory_entry *a, const struct directory_entry *b);

static void add_directory_entry (struct directory_entry *list, size_t *n,
                                 const struct slurmdl_elastic *e, const struct slot *s,
                                 const struct elastic_piece *p)
{
    struct directory_entry *x = &list[(*n)++];

    memset (x, 0, sizeof (*x));
    x->rank = e->membership.rank;
    x->summary = !p;
    if (s) {
        x->id = s->id;
        x->step = s->step;
    }
    if (p)
        x->piece = *p;
    x->piece.data = NULL;
}

static struct directory_entry *list_own_pieces (const struct slurmdl_elastic *e, size_t *n)
{
    size_t room = 2 + e->wants.n;
    struct directory_entry *list;

    for (int i = 0; i < 2; i++)
        room += e->slots[i].own.n + e->slots[i].copies.n;
    *n = 0;
    if (!(list = calloc (room, sizeof (*list))))
        return NULL;
    for (size_t k = 0; k < e->wants.n; k++)
        if (e->wants.list[k].kind == PIECE_SHARD)
            add_directory_entry (list, n, e, NULL, &e->wants.list[k]);
    for (int i = 0; i < 2; i++) {
        const struct slot *s = &e->slots[i];
        if (s->id == 0)
            continue;
        add_directory_entry (list, n, e, s, NULL);
        for (size_t k = 0; k < s->own.n; k++)
            if (s->own.list[k].kind == PIECE_SHARD)
                add_directory_entry (list, n, e, s, &s->own.list[k]);
        for (size_t k = 0; k < s->copies.n; k++)
            add_directory_entry (list, n, e, s, &s->copies.list[k]);
    }
    return list;
}

static int compare_pieces (const struct elastic_piece *a, const struct elastic_piece *b)
{
    int c = strcmp (a->name, b->name);

    return c ? c : box_compare (&a->box, &b->box);
}

/* Sort the newest commit first; within it, summaries and then the boxes of each
 * tensor.
 */
static int compare_entries (const void *a, const void *b)
{
    const struct directory_entry *x = a;
    const struct directory_entry *y = b;
    int c;

    if (x->id != y->id)
        return x->id > y->id ? -1 : 1;
    if (x->summary != y->summary)
        return x->summary ? -1 : 1;
    if ((c = compare_pieces (&x->piece, &y->piece)))
        return c;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Collect what all ranks have.  Returns -1 if one was lost. */
static int directory_gather (struct slurmdl_elastic *e, struct directory *d,
                             struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (e->comm);
    size_t *bytes = calloc (size, sizeof (*bytes));
    size_t own = 0, total = 0;
    struct directory_entry *mine = list_own_pieces (e, &own);
    int rv = -1;

    if (!mine || !bytes) {
        errorf (err, "out of memory");
        goto done;
    }
    own *= sizeof (*mine);
    if (slurmdl_allgather (e->comm, &own, sizeof (own), bytes, NULL, err) < 0)
        goto done;
    for (size_t r = 0; r < size; r++)
        total += bytes[r];
    if (!(d->list = malloc (total + 1))) {
        errorf (err, "out of memory");
        goto done;
    }
    d->n = total / sizeof (*d->list);
    if (total > 0 && slurmdl_allgather (e->comm, mine, own, d->list, bytes, err) < 0)
        goto done;
    qsort (d->list, d->n, sizeof (*d->list), compare_entries);
    rv = 0;
done:
    free (mine);
    free (bytes);
    return rv;
}

static bool same_name (const struct directory_entry *a, const struct directory_entry *b)
{
    return a->id == b->id && !a->summary && !b->summary && !strcmp (a->piece.name, b->piece.name);
}

static bool same_box (const struct directory_entry *a, const struct directory_entry *b)
{
    return same_name (a, b) && box_compare (&a->piece.box, &b->piece.box) == 0;
}

static size_t run_end (const struct directory *d, size_t i, same_f same)
{
    size_t k = i + 1;

    while (k < d->n && same (&d->list[i], &d->list[k]))
        k++;
    return k;
}

/* Whether the boxes of entries i .. end of a tensor cover it.  With 'once', count
 * copies of a box only once.  Otherwise boxes are disjoint.
 */
static bool is_covered (const struct directory *d, size_t i, size_t end, bool once)
{
    const struct elastic_piece *p = &d->list[i].piece;
    struct slab whole = slab_whole (p->box.ndims, p->dims);
    uint64_t n = 0;

    while (i < end) {
        n += slab_elements (&d->list[i].piece.box);
        i = once ? run_end (d, i, same_box) : i + 1;
    }
    return n == slab_elements (&whole);
}

/* Whether all slabs of the commit that begins at 'i' are there.  Sets '*end' to the
 * index after its last entry.
 */
static bool is_commit_whole (const struct directory *d, size_t i, size_t *end, const char **lost)
{
    uint64_t id = d->list[i].id;
    bool whole = true;

    while (i < d->n && d->list[i].id == id) {
        size_t k = i + 1;
        if (!d->list[i].summary) {
            k = run_end (d, i, same_name);
            if (!is_covered (d, i, k, true)) {
                *lost = d->list[i].piece.name;
                whole = false;
            }
        }
        i = k;
    }
    *end = i;
    return whole;
}

static int sort_ranks (const struct slurmdl_elastic *e, struct directory *d,
                       struct slurmdl_error *err)
{
    long size = slurmdl_comm_size (e->comm);
    bool *has = calloc ((size_t)size, sizeof (*has));

    d->have = calloc ((size_t)size, sizeof (*d->have));
    d->lack = calloc ((size_t)size, sizeof (*d->lack));
    if (!has || !d->have || !d->lack) {
        free (has);
        return errorf (err, "out of memory");
    }
    for (size_t i = 0; i < d->n; i++)
        if (d->list[i].summary && d->list[i].id == d->id)
            has[d->list[i].rank] = true;
    for (long r = 0; r < size; r++)
        if (has[r])
            d->have[d->nhave++] = r;
        else
            d->lack[d->nlack++] = r;
    free (has);
    return 0;
}

/* Choose the newest commit with all its slabs, the same on all ranks.  On
 * CHOICE_NONE, 'err' says whether slabs of a commit were lost.
 */
enum choice_result { CHOICE_FAILED = -1, CHOICE_NONE, CHOICE_MADE };

static enum choice_result directory_choose (const struct slurmdl_elastic *e, struct directory *d,
                                            struct slurmdl_error *err)
{
    const char *lost = NULL;
    int64_t step = 0;
    size_t i = 0, end;

    while (i < d->n && d->list[i].id && !d->id) {
        if (is_commit_whole (d, i, &end, &lost)) {
            d->id = d->list[i].id;
            d->step = d->list[i].step;
        } else if (!step)
            step = d->list[i].step;
        i = end;
    }
    if (!d->id && lost)
        errorf (err,
                "slabs of '%s' of step %lld are lost: %ld ranks, among them "
                "one and that which had its copies; continue from the checkpoint on disk",
                lost, (long long)step, (long)e->membership.generation->lost);
    if (!d->id)
        return CHOICE_NONE;
    return sort_ranks (e, d, err) < 0 ? CHOICE_FAILED : CHOICE_MADE;
}

/* Check that the wanted slabs cover each tensor exactly once. */
static int directory_check (const struct directory *d, struct slurmdl_error *err)
{
    size_t i = 0, end;

    while (i < d->n && d->list[i].id)
        i++;
    for (; i < d->n; i = end) {
        end = run_end (d, i, same_name);
        if (!is_covered (d, i, end, false)) {
            errno = EINVAL;
            return errorf (err, "the slabs of '%s' on all ranks do not cover it once",
                           d->list[i].piece.name);
        }
    }
    return 0;
}

static struct slot *elastic_slot (struct slurmdl_elastic *e, uint64_t id)
{
    for (int i = 0; i < 2; i++)
        if (e->slots[i].id == id)
            return &e->slots[i];
    return NULL;
}

static void directory_free (struct directory *d)
{
    free (d->list);
    free (d->have);
    free (d->lack);
}

/* A transfer between two ranks for one tensor. */
struct move {
    const struct elastic_piece *from; /* existing box */
    const struct elastic_piece *to;   /* wanted box */
};

/* The rank that gives the box of entries i .. end to rank 'to'. */
static long box_giver (const struct directory *d, size_t i, size_t end, long to)
{
    for (size_t k = i; k < end; k++)
        if (d->list[k].rank == to)
            return to;
    return d->list[i + (size_t)to % (end - i)].rank;
}

typedef int (*move_f) (const struct move *m, long giver, long taker, void *arg);

/* Call 'f' for each overlap between the existing boxes of a tensor (entries i ..
 * end) and the wanted ones (w .. wend).  A rank that has a box itself takes its
 * own.  The order is the same on all ranks.
 */
static int each_move (const struct directory *d, size_t i, size_t end, size_t w, size_t wend,
                      move_f f, void *arg)
{
    for (; w < wend; w++)
        for (size_t k = i, next; k < end; k = next) {
            struct move m = { &d->list[k].piece, &d->list[w].piece };
            struct slab both;
            int rv;
            next = run_end (d, k, same_box);
            if (slab_overlap (&m.from->box, &m.to->box, &both)
                && (rv = f (&m, box_giver (d, k, next, d->list[w].rank), d->list[w].rank, arg)))
                return rv;
        }
    return 0;
}

struct packing {
    struct slurmdl_elastic *e;
    const struct slot *slot;
    size_t *to, *from; /* bytes per rank */
    size_t *at_out, *at_in;
    unsigned char *out, *in;
    uint64_t size; /* bytes per element */
    struct elastic_piece *want;
    unsigned char *local; /* the wanted data in host memory */
};

static size_t move_bytes (const struct move *m, uint64_t size)
{
    struct slab both;

    slab_overlap (&m->from->box, &m->to->box, &both);
    return slab_elements (&both) * size;
}

static int count_move (const struct move *m, long giver, long taker, void *arg)
{
    struct packing *p = arg;

    if (giver == p->e->membership.rank)
        p->to[taker] += move_bytes (m, p->size);
    if (taker == p->e->membership.rank)
        p->from[giver] += move_bytes (m, p->size);
    return 0;
}

static const struct elastic_piece *find_held_piece (const struct slot *s,
                                                    const struct elastic_piece *like)
{
    const struct pieces *lists[] = { &s->own, &s->copies };

    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            if (piece_is_same (&lists[l]->list[i], like))
                return &lists[l]->list[i];
    return NULL;
}

static int pack_move (const struct move *m, long giver, long taker, void *arg)
{
    struct packing *p = arg;
    const struct elastic_piece *mine;
    struct slab both;

    if (giver != p->e->membership.rank)
        return 0;
    if (!(mine = find_held_piece (p->slot, m->from)))
        return -1;
    slab_overlap (&m->from->box, &m->to->box, &both);
    slab_copy (&both, p->out + p->at_out[taker], &mine->box, mine->data, p->size);
    p->at_out[taker] += move_bytes (m, p->size);
    return 0;
}

static int unpack (const struct move *m, long giver, long taker, void *arg)
{
    struct packing *p = arg;
    struct slab both;

    if (taker != p->e->membership.rank)
        return 0;
    slab_overlap (&m->from->box, &m->to->box, &both);
    slab_copy (&m->to->box, p->local, &both, p->in + p->at_in[giver], p->size);
    p->at_in[giver] += move_bytes (m, p->size);
    return 0;
}

static void prefix_sums (size_t *at, const size_t *bytes, size_t size)
{
    size_t sum = 0;

    for (size_t r = 0; r < size; r++) {
        at[r] = sum;
        sum += bytes[r];
    }
}

static size_t sum_bytes (const size_t *bytes, size_t size)
{
    size_t n = 0;

    for (size_t r = 0; r < size; r++)
        n += bytes[r];
    return n;
}

static int move_tensor (struct packing *p, const struct directory *d, const size_t at[4],
                        struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (p->e->comm);
    int rv = -1;

    memset (p->to, 0, size * sizeof (*p->to));
    memset (p->from, 0, size * sizeof (*p->from));
    each_move (d, at[0], at[1], at[2], at[3], count_move, p);
    prefix_sums (p->at_out, p->to, size);
    prefix_sums (p->at_in, p->from, size);
    p->out = malloc (sum_bytes (p->to, size) + 1);
    p->in = malloc (sum_bytes (p->from, size) + 1);
    p->want = pieces_find (&p->e->wants, d->list[at[0]].piece.name);
    p->local = malloc (p->want ? p->want->bytes + 1 : 1);
    if (!p->out || !p->in || !p->local) {
        errorf (err, "out of memory");
        goto done;
    }
    if (each_move (d, at[0], at[1], at[2], at[3], pack_move, p) < 0) {
        errorf (err, "an announced slab is missing");
        goto done;
    }
    if (slurmdl_alltoall (p->e->comm, p->out, p->to, p->in, p->from, err) < 0)
        goto done;
    each_move (d, at[0], at[1], at[2], at[3], unpack, p);
    rv = 0;
    if (p->want && p->want->bytes && piece_store (p->want, p->local) < 0)
        rv = errorf (err, "%s: cannot copy it to the device", p->want->name);
done:
    free (p->out);
    free (p->in);
    free (p->local);
    return rv;
}

/* Find the wanted entries with the name of entry 'i': at[2] .. at[3]. */
static bool find_wants (const struct directory *d, size_t i, size_t at[4])
{
    size_t w = d->n;

    while (w > 0 && d->list[w - 1].id == 0)
        w--;
    while (w < d->n && strcmp (d->list[w].piece.name, d->list[i].piece.name) != 0)
        w++;
    at[2] = w;
    at[3] = w < d->n ? run_end (d, w, same_name) : w;
    return w < d->n;
}

/* Move the slabs of the chosen commit to the ranks that want them. */
static int restore_slabs (struct slurmdl_elastic *e, const struct directory *d,
                          struct slurmdl_error *err)
{
    size_t size = (size_t)slurmdl_comm_size (e->comm);
    size_t *numbers = calloc (size * 4, sizeof (*numbers));
    struct packing p = { .e = e,
                         .slot = elastic_slot (e, d->id),
                         .to = numbers,
                         .from = numbers + size,
                         .at_out = numbers + 2 * size,
                         .at_in = numbers + 3 * size };
    int rv = numbers ? 0 : errorf (err, "out of memory");
    size_t at[4];

    for (size_t i = 0; i < d->n && rv == 0; i = at[1]) {
        at[0] = i;
        at[1] = i + 1;
        if (d->list[i].id != d->id || d->list[i].summary)
            continue;
        at[1] = run_end (d, i, same_name);
        if (!find_wants (d, i, at))
            continue;
        p.size = slurmdl_type_size (d->list[i].piece.type);
        rv = move_tensor (&p, d, at, err);
    }
    free (numbers);
    return rv;
}

/* The rank that sends the commit to the k-th rank that lacks it.  All ranks that
 * have it take turns.
 */
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

/* Check that each wanted tensor was committed with this shape. */
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

/* Fail on all ranks if one fails. */
static int agree_on_error (struct slurmdl_elastic *e, int rv, struct slurmdl_error *err)
{
    int32_t bad = rv < 0;

    if (slurmdl_allreduce (e->comm, &bad, &bad, 1, SLURMDL_I32, SLURMDL_MAX, err) < 0)
        return -1;
    if (!bad)
        return 0;
    errno = EINVAL;
    return errorf (err, "another rank protects other memory than was committed");
}

/* Restore the program's memory, or the bytes of a state, from a committed piece. */
static int restore_piece (struct slurmdl_elastic *e, const struct elastic_piece *committed,
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

static int take_piece (struct slurmdl_elastic *e, long from, const struct elastic_piece *p,
                       struct slurmdl_error *err)
{
    void *data = malloc (p->bytes + 1);
    int rv;

    if (!data)
        return errorf (err, "out of memory");
    rv = p->bytes ? mesh_recv (e->comm->mesh, from, data, p->bytes, err) : 0;
    if (rv == 0)
        rv = restore_piece (e, p, data, err);
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
        if (d->lack[k] == e->membership.rank && take_piece (e, giver (d, k), p, err) < 0)
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
        if (have && restore_piece (e, &list->list[i], list->list[i].data, err) < 0)
            return -1;
    }
    return 0;
}

/* Forget all commits but this one. */
static void keep_only (struct slurmdl_elastic *e, uint64_t id)
{
    for (int i = 0; i < 2; i++)
        if (id && e->slots[i].id == id)
            e->newest = i;
        else
            slot_clear (&e->slots[i]);
}

static int fill_directory (struct slurmdl_elastic *e, struct directory *d,
                           struct slurmdl_error *err)
{
    struct slot *s = elastic_slot (e, d->id);
    struct pieces got = { NULL, 0 };
    const struct pieces *list = s ? &s->own : &got;
    int rv = share_lists (e, d, &got, err);

    if (rv == 0)
        rv = agree_on_error (e, check_wants (e, list, err), err);
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
    enum choice_result rv = CHOICE_FAILED;

    error_clear (err);
    errno = ENOTCONN;
    if (e->broken || !e->comm)
        return errorf (err, "call slurmdl_elastic_form() first");
    e->ended = false;
    if (directory_gather (e, &d, err) < 0 || directory_check (&d, err) < 0)
        goto done;
    rv = directory_choose (e, &d, err);
    if (rv == CHOICE_MADE && fill_directory (e, &d, err) < 0)
        rv = CHOICE_FAILED;
    if (rv != CHOICE_FAILED)
        keep_only (e, d.id);
    if (rv == CHOICE_MADE && state_commit (e, d.step, &request, err) < 0)
        rv = CHOICE_FAILED;
    if (rv == CHOICE_MADE)
        *step = d.step;
done:
    e->broken |= rv == CHOICE_FAILED && errno != EINVAL;
    directory_free (&d);
    return rv;
}
