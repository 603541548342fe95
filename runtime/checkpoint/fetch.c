/* SPDX-License-Identifier: Apache-2.0 */
/* Read parts of a checkpoint in several threads, and verify them. */
#include "runtime/checkpoint/fetch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/thread_pool.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/io.h"

/* A thread's read buffer.  All zeros: not allocated yet. */
struct shard_scratch {
    unsigned char *data;
    size_t size;
};

/* Read in chunks that are still in the cache when their checksum is computed.  If
 * the data are only verified, use larger requests, because they make the disk
 * faster.
 */
enum { CHUNK = 256 << 10, CHUNK_CHECKED = 4 << 20 };

struct shard_reading {
    int fd;
    uint64_t at; /* offset of the tensor in the file */
    uint64_t size;
    unsigned char *data;
};

static int read_tensor_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    const struct shard_reading *r = arg;

    return io_read_at (r->fd, r->data + at_slab * r->size, n * r->size,
                       (off_t)(r->at + at_tensor * r->size));
}

struct shard_pass {
    struct shard_reading from;
    struct slab tensor;
    const struct slab *to;
    unsigned char *data; /* NULL: only verify */
    struct shard_scratch *scratch;
    uint32_t crc;
    atomic_int *cancel;
};

struct one_run {
    uint64_t at, n;
};

static int note_run (uint64_t at_to, uint64_t at_part, uint64_t n, void *arg)
{
    struct one_run *one = arg;

    (void)at_part;
    *one = (struct one_run){ at_to, n };
    return 1;
}

/* The address in the destination if the part is contiguous there; otherwise NULL. */
static unsigned char *place_of (const struct shard_pass *p, const struct slab *part,
                                uint64_t elements)
{
    struct one_run one = { 0, 0 };

    if (p->data)
        slab_walk (p->to, part, note_run, &one);
    return one.n == elements ? p->data + one.at * p->from.size : NULL;
}

static int get_room (struct shard_pass *p, uint64_t bytes)
{
    unsigned char *buf;

    if (p->scratch->size >= bytes)
        return 0;
    if (!(buf = realloc (p->scratch->data, bytes)))
        return -1;
    *p->scratch = (struct shard_scratch){ buf, bytes };
    return 0;
}

static int read_shard_part (struct shard_pass *p, const struct slab *part)
{
    uint64_t elements = slab_elements (part);
    uint64_t bytes = elements * p->from.size;
    unsigned char *place = place_of (p, part, elements);

    if (!place && get_room (p, bytes) < 0)
        return -1;
    p->from.data = place ? place : p->scratch->data;
    if (slab_walk (&p->tensor, part, read_tensor_run, &p->from) < 0)
        return -1;
    p->crc = crc32c (p->crc, p->from.data, bytes);
    if (!place && p->data)
        slab_copy (p->to, p->data, part, p->scratch->data, p->from.size);
    return 0;
}

static int read_next (const struct slab *part, void *arg)
{
    struct shard_pass *p = arg;

    if (!p->cancel || !atomic_load (p->cancel))
        return read_shard_part (p, part);
    errno = ECANCELED;
    return -1;
}

/* Read the whole saved slab 'shard' of a tensor and verify it.  Copy the part that
 * slab 'to' contains into 'data', host memory of the size of 'to' (NULL: keep
 * nothing).  Returns 0, or -1 with errno: EBADMSG (damaged or truncated), ECANCELED
 * once '*cancel' is nonzero ('cancel' may be NULL), ENOMEM, EIO.
 */
static int read_shard (int fd, const struct manifest_row *row, const struct shard_row *shard,
                       const struct slab *to, void *data, struct shard_scratch *scratch,
                       atomic_int *cancel)
{
    struct shard_pass p = {
        .from = { .fd = fd, .at = row->offset, .size = slurmdl_type_size (row->type) },
        .tensor = slab_whole ((int)row->ndims, row->dims),
        .to = to,
        .data = data,
        .scratch = scratch,
        .cancel = cancel,
    };
    struct slab s = shard_slab (row, shard);
    uint64_t chunk = (data ? CHUNK : CHUNK_CHECKED) / p.from.size;

    if (slab_cut (&s, chunk, read_next, &p) < 0)
        return -1;
    if (p.crc == shard->crc)
        return 0;
    errno = EBADMSG;
    return -1;
}

void fetch_free (struct fetch *f)
{
    free (f->list);
    f->list = NULL;
    f->n = 0;
}

static struct fetch_part *add_fetch_part (struct fetch *f)
{
    struct fetch_part *list = array_grow (f->list, f->n, sizeof (*list));

    if (!list)
        return NULL;
    f->list = list;
    return &f->list[f->n++];
}

static int first_place (uint64_t at, uint64_t at_slab, uint64_t n, void *arg)
{
    (void)at_slab;
    (void)n;
    *(uint64_t *)arg = at;
    return 1;
}

int fetch_add (struct fetch *f, const struct manifest_row *row, const struct slab *to, void *data)
{
    struct slab tensor = slab_whole ((int)row->ndims, row->dims);
    struct shard_row whole;
    struct slab both;

    for (uint32_t i = 0; row->bytes && i < manifest_shards (row); i++) {
        const struct shard_row *shard = manifest_shard (f->m, row, i, &whole);
        struct slab s = shard_slab (row, shard);
        struct fetch_part *p;
        uint64_t at = 0;
        if (slab_elements (&s) == 0 || !slab_overlap (&s, to, &both))
            continue;
        if (!(p = add_fetch_part (f)))
            return -1;
        slab_walk (&tensor, &s, first_place, &at);
        *p = (struct fetch_part){ row, *shard, *to, data, 0 };
        p->at = row->offset + at * slurmdl_type_size (row->type);
    }
    return 0;
}

int fetch_add_whole (struct fetch *f, const struct manifest_row *row)
{
    struct slab all = slab_whole ((int)row->ndims, row->dims);

    return fetch_add (f, row, &all, NULL);
}

/* A contiguous range of parts for one thread.  A thread that has finished its own
 * range helps with others.
 */
struct share {
    atomic_size_t next;
    size_t end;
};

struct fetching {
    struct fetch *f;
    struct share share[THREAD_POOL_MAX];
    size_t shares;
    atomic_size_t threads;
    atomic_int *cancel;
    atomic_int error;
};

/* The kernel reads ahead separately for each open file, and works best if each is
 * read from front to back.
 */
static int open_again (int fd)
{
    char path[64];
    int own;

    snprintf (path, sizeof (path), "/proc/self/fd/%d", fd);
    if ((own = open (path, O_RDONLY | O_CLOEXEC)) >= 0)
        posix_fadvise (own, 0, 0, POSIX_FADV_SEQUENTIAL);
    return own;
}

/* Keep the first error. */
static void note_error (struct fetching *g, const struct manifest_row *row)
{
    int none = 0;

    if (atomic_compare_exchange_strong (&g->error, &none, errno ? errno : EIO))
        g->f->bad = row;
}

static void read_share (struct fetching *g, struct share *s, int fd, struct shard_scratch *scratch)
{
    size_t i;

    while (atomic_load (&g->error) == 0 && (i = atomic_fetch_add (&s->next, 1)) < s->end) {
        const struct fetch_part *p = &g->f->list[i];
        if (read_shard (fd, p->row, &p->shard, &p->to, p->data, scratch, g->cancel) < 0)
            note_error (g, p->row);
    }
}

static void *read_some (void *arg)
{
    struct fetching *g = arg;
    size_t me = atomic_fetch_add (&g->threads, 1);
    /* a single thread can use the original descriptor */
    int own = g->shares > 1 ? open_again (g->f->fd) : -1;
    struct shard_scratch scratch = { NULL, 0 };

    for (size_t i = 0; i < g->shares; i++)
        read_share (g, &g->share[(me + i) % g->shares], own >= 0 ? own : g->f->fd, &scratch);
    free (scratch.data);
    if (own >= 0)
        close (own);
    return NULL;
}

static int compare_file_offsets (const void *a, const void *b)
{
    const struct fetch_part *x = a;
    const struct fetch_part *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static uint64_t part_bytes (const struct fetch_part *p)
{
    struct slab s = shard_slab (p->row, &p->shard);

    return slab_elements (&s) * slurmdl_type_size (p->row->type);
}

/* Make shares of about equal size in bytes. */
static void make_shares (struct fetching *g)
{
    const struct fetch *f = g->f;
    uint64_t all = 0, bytes = 0;
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++)
        all += part_bytes (&f->list[i]);
    for (size_t k = 0; k < g->shares; k++) {
        g->share[k].next = n;
        while (n < f->n && bytes < all * (k + 1) / g->shares)
            bytes += part_bytes (&f->list[n++]);
        g->share[k].end = n;
    }
}

int fetch_run (struct fetch *f, long threads, atomic_int *cancel)
{
    struct fetching g = { .f = f, .cancel = cancel };

    if (f->n)
        qsort (f->list, f->n, sizeof (*f->list), compare_file_offsets);
    g.shares = (size_t)threads < f->n ? (size_t)threads : f->n;
    make_shares (&g);
    thread_pool_run ((long)g.shares, read_some, &g);
    errno = atomic_load (&g.error);
    return errno ? -1 : 0;
}
