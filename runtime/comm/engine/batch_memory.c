/* SPDX-License-Identifier: Apache-2.0 */
/* Host and device memory of a batch of named tensors. */
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/engine/batch.h"
#include "runtime/comm/reduce/reduce.h"

enum { CHUNK = 1024 }; /* elements that fit into the cache */

void *engine_buffer_room (struct engine_buffer *b, size_t n)
{
    if (b->room < n) {
        size_t room = (n + n / 4 + 4095) & ~(size_t)4095;
        void *data = aligned_alloc (4096, room);
        if (!data)
            return NULL;
        free (b->data);
        b->data = data;
        b->room = room;
    }
    return b->data ? b->data : (b->data = calloc (1, 64));
}

int batch_read (void *host, const void *from, size_t n)
{
    const struct memory_ops *ops = n ? memory_ops_of (from) : NULL;

    if (ops)
        return ops->to_host (host, from, n);
    if (n)
        memcpy (host, from, n);
    return 0;
}

int batch_write (void *to, const void *host, size_t n)
{
    const struct memory_ops *ops = n ? memory_ops_of (to) : NULL;

    if (ops)
        return ops->to_device (to, host, n);
    if (n && to != host)
        memmove (to, host, n);
    return 0;
}

const void *batch_view (const void *p, size_t n, struct engine_buffer *b)
{
    if (!n || !memory_ops_of (p))
        return p;
    if (!engine_buffer_room (b, n) || batch_read (b->data, p, n) < 0)
        return NULL;
    return b->data;
}

void *batch_target (const struct engine_task *t)
{
    return t->take ? t->result : t->out;
}

size_t batch_part (const struct engine *e, const struct tensor *t, long rank)
{
    size_t rows = t->n / t->row;

    return (rows / (size_t)e->size + ((size_t)rank < rows % (size_t)e->size)) * t->row;
}

size_t batch_part_at (const struct engine *e, const struct tensor *t, long rank)
{
    size_t rows = t->n / t->row;
    size_t more = rows % (size_t)e->size;

    return ((size_t)rank * (rows / (size_t)e->size) + ((size_t)rank < more ? (size_t)rank : more))
           * t->row;
}

size_t batch_elements (const struct engine_batch *b)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->items[i].t->n;
    return n;
}

void batch_scale (void *out, const void *in, size_t n, enum slurmdl_type type, double factor)
{
    size_t size = slurmdl_type_size (type);

    if (factor == 1) {
        if (n && out != in)
            memcpy (out, in, n * size);
        return;
    }
    for (size_t i = 0; i < n; i += CHUNK) {
        size_t some = n - i < CHUNK ? n - i : CHUNK;
        char *to = (char *)out + i * size;
        if (out != in)
            memcpy (to, (const char *)in + i * size, some * size);
        reduce_scale (to, some, type, factor);
    }
}
