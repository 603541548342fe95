/* SPDX-License-Identifier: Apache-2.0 */
/* Write memory into a file at the speed of the disk, summing it up. */
#include "runtime/pour.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/crc32c.h"
#include "runtime/io.h"
#include "runtime/memory.h"

/* What O_DIRECT asks of places, lengths and memory; a request; requests that
 * wait; what the processor's cache holds while it is summed up and copied.
 */
enum { PAGE = 4096, REQUEST = 8 << 20, DEPTH = 3, HOT = 256 << 10 };

/* Less than this is not worth a thread. */
enum { SMALL = 1 << 20 };

struct request {
    uint64_t at;
    size_t bytes;
    const unsigned char *data;
};

/* One thread puts requests, another writes them. */
struct pipe {
    int fd, direct;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct request ring[DEPTH];
    unsigned put, done; /* requests so far */
    bool last;
    int error;
};

/* ---- the writer ---- */

static int write_request (struct pipe *p, const struct request *r)
{
    if (p->direct >= 0) {
        if (io_write_at (p->direct, r->data, r->bytes, (off_t)r->at) == 0)
            return 0;
        /* said yes to O_DIRECT, but not to this alignment */
        if (errno != EINVAL)
            return -1;
        p->direct = -1;
    }
    return io_write_at (p->fd, r->data, r->bytes, (off_t)r->at);
}

static void *writer (void *arg)
{
    struct pipe *p = arg;

    pthread_mutex_lock (&p->lock);
    for (;;) {
        while (p->put == p->done && !p->last)
            pthread_cond_wait (&p->moved, &p->lock);
        if (p->put == p->done)
            break;
        struct request r = p->ring[p->done % DEPTH];
        int e = p->error;
        pthread_mutex_unlock (&p->lock);
        if (!e && write_request (p, &r) < 0)
            e = errno;
        pthread_mutex_lock (&p->lock);
        p->error = e;
        p->done++;
        pthread_cond_broadcast (&p->moved);
    }
    pthread_mutex_unlock (&p->lock);
    return NULL;
}

/* Wait until fewer than 'most' requests are waiting. */
static int wait_below (struct pipe *p, unsigned most)
{
    int e;

    pthread_mutex_lock (&p->lock);
    while (p->put - p->done >= most)
        pthread_cond_wait (&p->moved, &p->lock);
    e = p->error;
    pthread_mutex_unlock (&p->lock);
    if (!e)
        return 0;
    errno = e;
    return -1;
}

static void put_request (struct pipe *p, const struct request *r)
{
    pthread_mutex_lock (&p->lock);
    p->ring[p->put++ % DEPTH] = *r;
    pthread_cond_broadcast (&p->moved);
    pthread_mutex_unlock (&p->lock);
}

/* ---- where we are in the list ---- */

struct cursor {
    const struct extent *list;
    size_t n;
    size_t i;      /* the extent */
    uint64_t done; /* of it */
};

static uint64_t place (const struct cursor *c)
{
    return c->list[c->i].at + c->done;
}

static int
copy_part (unsigned char *to, const struct extent *x, uint64_t from, size_t n)
{
    if (x->device)
        return x->device->to_host (to, x->data + from, n);
    memcpy (to, x->data + from, n);
    return 0;
}

/* Copy the next 'n' bytes to 'to', and sum them up. */
static int take (struct cursor *c, unsigned char *to, size_t n)
{
    while (n > 0) {
        const struct extent *x = &c->list[c->i];
        size_t most = x->device ? REQUEST : HOT;
        size_t k = x->bytes - c->done < n ? (size_t)(x->bytes - c->done) : n;
        if (k > most)
            k = most;
        if (copy_part (to, x, c->done, k) < 0)
            return -1;
        if (x->crc)
            *x->crc = crc32c (*x->crc, to, k);
        to += k;
        n -= k;
        if ((c->done += k) == x->bytes) {
            c->i++;
            c->done = 0;
        }
    }
    return 0;
}

/* Bytes from here on that can be written where they are: 0 if few. */
static size_t in_place (const struct cursor *c)
{
    const struct extent *x = &c->list[c->i];
    uint64_t left = x->bytes - c->done;

    if (x->device || (uintptr_t)(x->data + c->done) % PAGE || place (c) % PAGE
        || left < SMALL)
        return 0;
    return left > REQUEST ? REQUEST : (size_t)(left / PAGE * PAGE);
}

/* The end of the extents that follow each other without a gap. */
static uint64_t chain_end (const struct cursor *c)
{
    uint64_t end = place (c);
    uint64_t done = c->done;

    for (size_t i = c->i; i < c->n && c->list[i].at + done == end; i++) {
        end += c->list[i].bytes - done;
        done = 0;
    }
    return end;
}

/* ---- through the page cache ---- */

static int write_part (int fd, struct cursor *c, unsigned char *buf, uint64_t n)
{
    while (n > 0) {
        uint64_t at = place (c);
        size_t k = n < HOT ? (size_t)n : HOT;
        if (take (c, buf, k) < 0 || io_write_at (fd, buf, k, (off_t)at) < 0)
            return -1;
        n -= k;
    }
    return 0;
}

/* Host memory needs no copy of ours. */
static int write_extent (int fd, const struct extent *x, unsigned char *buf)
{
    struct cursor c = { x, 1, 0, 0 };

    if (x->device)
        return write_part (fd, &c, buf, x->bytes);
    for (uint64_t done = 0; done < x->bytes;) {
        size_t k = x->bytes - done < HOT ? (size_t)(x->bytes - done) : HOT;
        if (x->crc)
            *x->crc = crc32c (*x->crc, x->data + done, k);
        if (io_write_at (fd, x->data + done, k, (off_t)(x->at + done)) < 0)
            return -1;
        done += k;
    }
    return 0;
}

static int pour_buffered (int fd, const struct extent *list, size_t n)
{
    unsigned char *buf = malloc (HOT);
    int rv = buf ? 0 : -1;

    for (size_t i = 0; rv == 0 && i < n; i++)
        rv = write_extent (fd, &list[i], buf);
    free (buf);
    return rv;
}

/* ---- past the page cache ---- */

/* The next request of a chain whose last whole page ends at 'end'. */
static int next_request (struct pipe *p,
                         struct cursor *c,
                         unsigned char *buf,
                         uint64_t end)
{
    struct request r = { .at = place (c), .data = buf };
    struct cursor look = *c;
    size_t n = in_place (c);

    if (n && place (c) + n <= end) {
        const struct extent *x = &c->list[c->i];
        r.data = x->data + c->done;
        r.bytes = n;
        for (size_t k = 0; x->crc && k < n; k += HOT)
            *x->crc = crc32c (*x->crc, r.data + k, n - k < HOT ? n - k : HOT);
        if ((c->done += n) == x->bytes) {
            c->i++;
            c->done = 0;
        }
        put_request (p, &r);
        return 0;
    }
    r.bytes = end - r.at < REQUEST ? (size_t)(end - r.at) : REQUEST;
    /* up to where memory can be written as it is */
    for (look.i++, look.done = 0;
         look.i < look.n && place (&look) < r.at + r.bytes;
         look.i++)
        if (in_place (&look))
            r.bytes = (size_t)(place (&look) - r.at);
    if (take (c, buf, r.bytes) < 0)
        return -1;
    put_request (p, &r);
    return 0;
}

static int pour_chain (struct pipe *p, struct cursor *c, unsigned char *bufs)
{
    uint64_t end = chain_end (c);
    uint64_t first = (place (c) + PAGE - 1) / PAGE * PAGE;
    uint64_t last = end / PAGE * PAGE;
    unsigned char *edge = bufs + DEPTH * (size_t)REQUEST;

    if (last < first + SMALL)
        return write_part (p->fd, c, edge, end - place (c));
    if (write_part (p->fd, c, edge, first - place (c)) < 0)
        return -1;
    while (place (c) < last) {
        if (wait_below (p, DEPTH) < 0
            || next_request (
                   p, c, bufs + p->put % DEPTH * (size_t)REQUEST, last)
                   < 0)
            return -1;
        if (c->i == c->n)
            return 0;
    }
    return end > last ? write_part (p->fd, c, edge, end - last) : 0;
}

static int pour_direct (struct pipe *p, const struct extent *list, size_t n)
{
    struct cursor c = { list, n, 0, 0 };
    unsigned char *bufs;
    pthread_t thread;
    int rv = 0;
    int e;

    if (posix_memalign ((void **)&bufs, PAGE, DEPTH * (size_t)REQUEST + HOT))
        return -1;
    if ((errno = pthread_create (&thread, NULL, writer, p))) {
        free (bufs);
        return -1;
    }
    while (rv == 0 && c.i < n)
        rv = pour_chain (p, &c, bufs);
    e = errno;
    pthread_mutex_lock (&p->lock);
    p->last = true;
    pthread_cond_broadcast (&p->moved);
    pthread_mutex_unlock (&p->lock);
    pthread_join (thread, NULL);
    free (bufs);
    errno = rv < 0 ? e : p->error;
    return rv < 0 || p->error ? -1 : 0;
}

int pour (int fd, int direct, const struct extent *list, size_t n)
{
    struct pipe p = { .fd = fd, .direct = direct };
    uint64_t sum = 0;
    int rv;

    for (size_t i = 0; i < n; i++)
        sum += list[i].bytes;
    if (direct < 0 || sum < SMALL)
        return pour_buffered (fd, list, n);
    pthread_mutex_init (&p.lock, NULL);
    pthread_cond_init (&p.moved, NULL);
    rv = pour_direct (&p, list, n);
    pthread_cond_destroy (&p.moved);
    pthread_mutex_destroy (&p.lock);
    return rv;
}

int pour_open_direct (const char *path)
{
    const char *wish = getenv ("DL_DIRECT");

    if (wish && !strcmp (wish, "0"))
        return -1;
    return open (path, O_WRONLY | O_DIRECT | O_CLOEXEC);
}
