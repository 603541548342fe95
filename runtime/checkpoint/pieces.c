/* SPDX-License-Identifier: Apache-2.0 */
/* Write a rank's pieces into the checkpoint file. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/device_memory.h"
#include "runtime/base/thread_pool.h"
#include "runtime/checkpoint/commit.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/io.h"

struct memory_ops;

/* Bytes for one place in the file. */
struct extent {
    uint64_t at;
    uint64_t bytes;
    const unsigned char *data;
    const struct memory_ops *device; /* NULL: host memory */
    uint32_t *crc;                   /* checksum to extend with these bytes, or NULL */
};

/* PAGE is the alignment that O_DIRECT requires of places, lengths and memory.  HUGE
 * is the size of a huge page, and REQUEST that of one write.  HOT bytes fit into
 * the processor's cache between checksum and copy.  Extents up to LITTLE are
 * combined.
 */
enum { PAGE = 4096, HUGE = 2 << 20, REQUEST = 4 << 20, HOT = 256 << 10, LITTLE = 16 << 10 };

/* DEPTH requests run at once.  Less than SMALL is not worth a thread. */
enum { DEPTH = 4, SMALL = 1 << 20 };

/* ---- position in the list ---- */

struct cursor {
    const struct extent *list;
    size_t n;
    size_t i;      /* index of the extent */
    uint64_t done; /* bytes of it already done */
};

static uint64_t cursor_offset (const struct cursor *c)
{
    return c->list[c->i].at + c->done;
}

static void move_on (struct cursor *c, size_t n)
{
    if ((c->done += n) == c->list[c->i].bytes) {
        c->i++;
        c->done = 0;
    }
}

/* How many of the next 'n' bytes belong to one extent. */
static size_t of_one (const struct cursor *c, size_t n)
{
    uint64_t left = c->list[c->i].bytes - c->done;

    return left < n ? (size_t)left : n;
}

/* Bytes that can be written from here without a copy, or 0 if they are few. */
static size_t in_place (const struct cursor *c)
{
    const struct extent *x = &c->list[c->i];
    uint64_t left = x->bytes - c->done;

    if (x->device || (uintptr_t)(x->data + c->done) % PAGE || cursor_offset (c) % PAGE
        || left < SMALL)
        return 0;
    return left > REQUEST ? REQUEST : (size_t)(left / PAGE * PAGE);
}

/* The end of the contiguous extents from here on. */
static uint64_t chain_end (const struct cursor *c)
{
    uint64_t end = cursor_offset (c);
    uint64_t done = c->done;

    for (size_t i = c->i; i < c->n && c->list[i].at + done == end; i++) {
        end += c->list[i].bytes - done;
        done = 0;
    }
    return end;
}

/* ---- requests ---- */

/* Threads take requests in order.  If an extent spans several requests, its
 * checksum is joined at the end.
 */
struct request {
    struct cursor from;
    size_t bytes;
    size_t sum;    /* index of its first checksum */
    bool direct;   /* bypass the page cache */
    bool in_place; /* write straight from memory, which belongs to one extent */
};

struct sum {
    uint32_t *to; /* NULL: no checksum wanted */
    uint32_t crc;
    uint64_t bytes;
};

struct striped_plan {
    int fd;
    atomic_int direct; /* descriptor with O_DIRECT, or -1 once it has failed */
    struct request *list;
    size_t n;
    struct sum *sums;
    size_t nsums;
    atomic_size_t next;
    atomic_int error;
};

static int add_request (struct striped_plan *p, struct cursor *c, uint64_t bytes, bool direct,
                        bool in_place)
{
    struct request *list = array_grow (p->list, p->n, sizeof (*list));

    if (!list)
        return -1;
    p->list = list;
    p->list[p->n++] = (struct request){ *c, (size_t)bytes, p->nsums, direct, in_place };
    while (bytes > 0) {
        size_t k = of_one (c, (size_t)bytes);
        p->nsums++;
        bytes -= k;
        move_on (c, k);
    }
    return 0;
}

/* Combine small adjacent extents in host memory: copying them is cheaper than one
 * system call each.
 */
static uint64_t little_ones (const struct cursor *c)
{
    uint64_t at = cursor_offset (c);
    uint64_t bytes = 0;

    for (size_t i = c->i; c->done == 0 && i < c->n; i++) {
        const struct extent *x = &c->list[i];
        if (x->device || x->bytes > LITTLE || x->at != at + bytes || bytes + x->bytes > HOT)
            break;
        bytes += x->bytes;
    }
    return bytes;
}

/* Larger extents in host memory need no copy. */
static int plan_buffered (struct striped_plan *p, struct cursor *c)
{
    int rv = 0;

    while (rv == 0 && c->i < c->n) {
        uint64_t bytes = little_ones (c);
        size_t one = of_one (c, REQUEST);
        if (bytes > one)
            rv = add_request (p, c, bytes, false, false);
        else
            rv = add_request (p, c, one, false, !c->list[c->i].device);
    }
    return rv;
}

/* Plan the next request of a chain whose last whole page ends at 'end'. */
static int plan_direct (struct striped_plan *p, struct cursor *c, uint64_t end)
{
    uint64_t at = cursor_offset (c);
    uint64_t bytes = end - at < REQUEST ? end - at : REQUEST;
    struct cursor look = *c;
    size_t n = in_place (c);

    if (n && at + n <= end)
        return add_request (p, c, n, true, true);
    /* stop where memory can be written without a copy */
    for (look.i++, look.done = 0; look.i < look.n && cursor_offset (&look) < at + bytes; look.i++)
        if (in_place (&look))
            bytes = cursor_offset (&look) - at;
    return add_request (p, c, bytes, true, false);
}

static int plan_chain (struct striped_plan *p, struct cursor *c)
{
    uint64_t end = chain_end (c);
    uint64_t first = (cursor_offset (c) + PAGE - 1) / PAGE * PAGE;
    uint64_t last = end / PAGE * PAGE;
    int rv = 0;

    if (last < first + SMALL)
        return add_request (p, c, end - cursor_offset (c), false, false);
    if (first > cursor_offset (c))
        rv = add_request (p, c, first - cursor_offset (c), false, false);
    while (rv == 0 && c->i < c->n && cursor_offset (c) < last)
        rv = plan_direct (p, c, last);
    if (rv == 0 && end > last)
        rv = add_request (p, c, end - last, false, false);
    return rv;
}

/* ---- writing ---- */

static int copy_part (unsigned char *to, const struct extent *x, uint64_t from, size_t n)
{
    if (x->device)
        return x->device->to_host (to, x->data + from, n);
    memcpy (to, x->data + from, n);
    return 0;
}

static void sum_up (struct sum *s, const void *data, size_t n)
{
    if (s->to)
        s->crc = crc32c (s->crc, data, n);
    s->bytes += n;
}

/* Copy the bytes of a request to 'to', and compute their checksums. */
static int copy_summed (struct striped_plan *p, const struct request *r, unsigned char *to)
{
    struct sum *s = &p->sums[r->sum];
    struct cursor c = r->from;
    size_t i = c.i;

    for (size_t n = r->bytes; n > 0; s += c.i != i, i = c.i) {
        const struct extent *x = &c.list[c.i];
        size_t k = of_one (&c, n);
        if (!x->device && k > HOT)
            k = HOT;
        if (copy_part (to, x, c.done, k) < 0)
            return -1;
        s->to = x->crc;
        sum_up (s, to, k);
        to += k;
        n -= k;
        move_on (&c, k);
    }
    return 0;
}

static int write_stripe (struct striped_plan *p, bool direct, const void *data, size_t n,
                         uint64_t at)
{
    int fd = direct ? atomic_load (&p->direct) : -1;

    if (fd >= 0) {
        if (io_write_at (fd, data, n, (off_t)at) == 0)
            return 0;
        /* the file system accepted O_DIRECT, but not this alignment */
        if (errno != EINVAL)
            return -1;
        atomic_store (&p->direct, -1);
    }
    return io_write_at (p->fd, data, n, (off_t)at);
}

/* Work in small parts, so that each is still in the cache after its checksum. */
static int put_in_place (struct striped_plan *p, const struct request *r)
{
    const struct extent *x = &r->from.list[r->from.i];
    const unsigned char *data = x->data + r->from.done;
    struct sum *s = &p->sums[r->sum];

    s->to = x->crc;
    for (size_t done = 0; done < r->bytes; done += HOT) {
        size_t k = r->bytes - done < HOT ? r->bytes - done : HOT;
        sum_up (s, data + done, k);
        if (!r->direct
            && write_stripe (p, false, data + done, k, cursor_offset (&r->from) + done) < 0)
            return -1;
    }
    return r->direct ? write_stripe (p, true, data, r->bytes, cursor_offset (&r->from)) : 0;
}

static int put_copy (struct striped_plan *p, const struct request *r, unsigned char **buf)
{
    if (!*buf) {
        if ((errno = posix_memalign ((void **)buf, HUGE, REQUEST)))
            return -1;
        madvise (*buf, REQUEST, MADV_HUGEPAGE);
    }
    if (copy_summed (p, r, *buf) < 0)
        return -1;
    return write_stripe (p, r->direct, *buf, r->bytes, cursor_offset (&r->from));
}

/* Do buffered writes last: they would wait for the direct writes in flight, and
 * hold up the rest.
 */
static void *put_some (void *arg)
{
    struct striped_plan *p = arg;
    unsigned char *buf = NULL;
    size_t i;

    while (!atomic_load (&p->error) && (i = atomic_fetch_add (&p->next, 1)) < 2 * p->n) {
        const struct request *r = &p->list[i % p->n];
        if (r->direct != (i < p->n))
            continue;
        if ((r->in_place ? put_in_place (p, r) : put_copy (p, r, &buf)) < 0)
            atomic_store (&p->error, errno ? errno : EIO);
    }
    free (buf);
    return NULL;
}

static int write_stripes (struct striped_plan *p, uint64_t bytes)
{
    if (!(p->sums = calloc (p->nsums + 1, sizeof (*p->sums))))
        return -1;
    thread_pool_run (bytes < SMALL ? 1 : DEPTH, put_some, p);
    if ((errno = atomic_load (&p->error)))
        return -1;
    for (size_t i = 0; i < p->nsums; i++) {
        const struct sum *s = &p->sums[i];
        if (s->to)
            *s->to = crc32c_join (*s->to, s->crc, s->bytes);
    }
    return 0;
}

/* Write the extents, which are sorted and do not overlap.  Use 'direct' (a
 * descriptor with O_DIRECT, or -1) where it accepts them, and 'fd' otherwise.
 * Several threads copy, compute checksums and write.  Returns 0, or -1 with errno
 * set.
 */
static int pour (int fd, int direct, const struct extent *list, size_t n)
{
    struct cursor c = { list, n, 0, 0 };
    struct striped_plan p = { .fd = fd, .direct = direct };
    uint64_t bytes = 0;
    int rv = 0;
    int e;

    for (size_t i = 0; i < n; i++)
        bytes += list[i].bytes;
    if (direct < 0 || bytes < SMALL)
        rv = plan_buffered (&p, &c);
    while (rv == 0 && c.i < n)
        rv = plan_chain (&p, &c);
    if (rv == 0)
        rv = write_stripes (&p, bytes);
    e = errno;
    free (p.list);
    free (p.sums);
    errno = e;
    return rv;
}

/* Open 'path' with O_DIRECT.  Returns -1 if the file system does not support it or
 * DL_DIRECT=0 forbids it.
 */
static int pour_open_direct (const char *path)
{
    const char *wish = getenv ("DL_DIRECT");

    if (wish && !strcmp (wish, "0"))
        return -1;
    return inside_open_any (path, O_WRONLY | O_DIRECT, 0, NULL);
}

/* Write shorter runs of a slab one by one. */
enum { RUN_MIN = 64 << 10 };

struct extents {
    struct extent *list;
    size_t n;
};

static int add_extent (struct extents *x, const struct extent *new)
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
    uint64_t size; /* bytes per element */
    int fd;
};

static int add_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
{
    struct runs *r = arg;

    return add_extent (r->to, &(struct extent){
                                  .at = r->p->offset + at_tensor * r->size,
                                  .bytes = n * r->size,
                                  .data = r->p->data + at_slab * r->size,
                                  .device = r->p->device,
                                  .crc = &r->p->crc,
                              });
}

static int write_tensor_run (uint64_t at_tensor, uint64_t at_slab, uint64_t n, void *arg)
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

/* Write a slab that consists of many short runs.  The data between them belong to
 * other ranks.
 */
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
        rv = slab_walk (tensor, &r->p->slab, write_tensor_run, r);
    }
    e = errno;
    free (copy);
    errno = e;
    return rv;
}

static int write_piece (struct extents *x, int fd, struct piece *p)
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

static int compare_extents (const void *a, const void *b)
{
    const struct extent *x = a;
    const struct extent *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* Write what lies between the data together with them, so that the disk gets one
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
        if (p->at > *first && p->at < last && add_extent (x, &new) < 0)
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
            rv = write_piece (&x, fd, &list[i]);
    if (rv == 0 && whole && direct >= 0 && x.n > 0) {
        rv = add_rest (&x, whole, &first);
        /* appending is faster than filling a hole */
        if (rv == 0 && !whole->reserved)
            rv = ftruncate (fd, (off_t)first);
    }
    if (rv == 0 && x.n > 0) {
        qsort (x.list, x.n, sizeof (*x.list), compare_extents);
        rv = pour (fd, direct, x.list, x.n);
    }
    e = errno;
    if (direct >= 0)
        close (direct);
    free (x.list);
    errno = e;
    return rv;
}
