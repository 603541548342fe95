/* SPDX-License-Identifier: Apache-2.0 */
/* Write a rank's pieces into the file of a checkpoint. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/device_memory.h"
#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/checkpoint/striped_write.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/io.h"

/* Shorter runs of a slab are written one by one. */
enum { RUN_MIN = 64 << 10 };

struct extents {
    struct extent *list;
    size_t n;
};

static int add (struct extents *x, const struct extent *new)
{
    struct extent *list = array_grow (x->list, x->n, sizeof (*list));

    if (!list)
        return -1;
    x->list = list;
    x->list[x->n++] = *new;
    return 0;
}

struct runs {
    struct extents *to;
    struct piece *p;
    const unsigned char *host;
    uint64_t size; /* of an element */
    int fd;
};

static int add_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    struct runs *r = arg;

    return add (r->to, &(struct extent){
                           .at = r->p->offset + at_tensor * r->size,
                           .bytes = n * r->size,
                           .data = r->p->data + at_slab * r->size,
                           .device = r->p->device,
                           .crc = &r->p->crc,
                       });
}

static int write_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    const struct runs *r = arg;

    return io_write_at (r->fd, r->host + at_slab * r->size, n * r->size,
                        (off_t)(r->p->offset + at_tensor * r->size));
}

static int first_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    (void)at_tensor;
    (void)at_slab;
    *(uint64_t *)arg = n;
    return 1;
}

/* A slab of many short runs: its neighbours are other ranks'. */
static int write_short_runs (struct runs *r, const struct slab *tensor)
{
    unsigned char *copy = NULL;
    int rv = 0;
    int e;

    r->host = r->p->data;
    if (r->p->device) {
        if (!(copy = malloc (r->p->bytes)))
            return -1;
        rv = r->p->device->to_host (copy, r->p->data, r->p->bytes);
        r->host = copy;
    }
    if (rv == 0) {
        r->p->crc = crc32c (0, r->host, r->p->bytes);
        rv = slab_walk (tensor, &r->p->slab, write_run, r);
    }
    e = errno;
    free (copy);
    errno = e;
    return rv;
}

static int put_piece (struct extents *x, int fd, struct piece *p)
{
    struct slab tensor = slab_whole (p->slab.ndims, p->dims);
    struct runs r = { x, p, NULL, slurmdl_type_size (p->type), fd };
    uint64_t n = 0;

    p->crc = 0;
    if (p->bytes == 0)
        return 0;
    slab_walk (&tensor, &p->slab, first_run, &n);
    if (n * r.size < RUN_MIN && n * r.size < p->bytes)
        return write_short_runs (&r, &tensor);
    return slab_walk (&tensor, &p->slab, add_run, &r);
}

static int by_place (const void *a, const void *b)
{
    const struct extent *x = a;
    const struct extent *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* What lies between the data is written with them: then the disk gets one
 * stream.
 */
static int add_rest (struct extents *x, const struct draft *d, uint64_t *first)
{
    const unsigned char *image = d->image;
    uint64_t last = 0;

    *first = UINT64_MAX;
    for (size_t i = 0; i < x->n; i++) {
        if (x->list[i].at < *first)
            *first = x->list[i].at;
        if (x->list[i].at > last)
            last = x->list[i].at;
    }
    for (size_t i = 0; i < d->nrest; i++) {
        const struct part *p = &d->rest[i];
        struct extent new = { .at = p->at, .bytes = p->bytes, .data = image };
        if (p->at > *first && p->at < last && add (x, &new) < 0)
            return -1;
        image += p->bytes;
    }
    return 0;
}

int write_pieces (const char *path, int fd, struct piece *list, size_t n, const struct draft *whole)
{
    struct extents x = { 0 };
    int direct = pour_open_direct (path);
    uint64_t first;
    int rv = 0;
    int e;

    for (size_t i = 0; rv == 0 && i < n; i++)
        if (list[i].offset != UINT64_MAX)
            rv = put_piece (&x, fd, &list[i]);
    if (rv == 0 && whole && direct >= 0 && x.n > 0) {
        rv = add_rest (&x, whole, &first);
        /* appending is faster than filling a hole */
        if (rv == 0 && !whole->reserved)
            rv = ftruncate (fd, (off_t)first);
    }
    if (rv == 0 && x.n > 0) {
        qsort (x.list, x.n, sizeof (*x.list), by_place);
        rv = pour (fd, direct, x.list, x.n);
    }
    e = errno;
    if (direct >= 0)
        close (direct);
    free (x.list);
    errno = e;
    return rv;
}
