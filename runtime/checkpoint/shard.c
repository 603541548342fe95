/* SPDX-License-Identifier: Apache-2.0 */
/* Read one saved slab of a tensor, and compare its checksum. */
#include "runtime/checkpoint/shard.h"

#include <errno.h>
#include <stdlib.h>

#include "runtime/storage/crc32c.h"
#include "runtime/storage/io.h"

/* What is read at once: it is still in the cache when it is summed up.  What is
 * not kept is read for the disk's sake, which is as fast as a request is large.
 */
enum { CHUNK = 256 << 10, CHUNK_CHECKED = 4 << 20 };

struct shard_reading {
    int fd;
    uint64_t at; /* of the tensor in the file */
    uint64_t size;
    unsigned char *data;
};

static int read_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    const struct shard_reading *r = arg;

    return io_read_at (r->fd, r->data + at_slab * r->size, n * r->size,
                       (off_t)(r->at + at_tensor * r->size));
}

struct shard_pass {
    struct shard_reading from;
    struct slab tensor;
    const struct slab *to;
    unsigned char *data; /* NULL: only summed up */
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

/* Where the part lies in one piece in the memory that it is for; else NULL. */
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

static int read_part (struct shard_pass *p, const struct slab *part)
{
    uint64_t elements = slab_elements (part);
    uint64_t bytes = elements * p->from.size;
    unsigned char *place = place_of (p, part, elements);

    if (!place && get_room (p, bytes) < 0)
        return -1;
    p->from.data = place ? place : p->scratch->data;
    if (slab_walk (&p->tensor, part, read_run, &p->from) < 0)
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
        return read_part (p, part);
    errno = ECANCELED;
    return -1;
}

int read_shard (int fd, const struct manifest_row *row, const struct shard_row *shard,
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
