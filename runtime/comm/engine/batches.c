/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors are reduced together. */
#include <stdlib.h>

#include "runtime/comm/engine/tensor_table.h"

/* A tensor of this many bytes is worth a collective of its own, which saves
 * two copies. */
enum { ALONE_BYTES = 1 << 20 };

static size_t size_of (const struct coordinator *c, const struct tensor_entry *f)
{
    const struct tensor *t = f->t;
    size_t n = 0;

    if (t->what != SLURMDL_ALLGATHER)
        return tensor_weight (t);
    for (long r = 0; r < c->size; r++)
        n += f->counts[r];
    return n * tensor_item (t);
}

static bool alone (const struct coordinator *c, const struct tensor_entry *f)
{
    return f->t->compression == SLURMDL_PLAIN && size_of (c, f) >= ALONE_BYTES;
}

/* Take the first that is ready out of the list, and all that go with it. */
static struct tensor_entry *choose (struct coordinator *c, size_t fusion, size_t *n)
{
    struct tensor_entry *head = c->ready;
    struct tensor_entry **at;
    size_t bytes = size_of (c, head);
    struct tensor_entry **end = &head->next;
    struct tensor_entry *chosen = NULL;

    c->ready = head->next;
    *n = 1;
    for (at = alone (c, head) ? NULL : &c->ready; at && *at;) {
        struct tensor_entry *f = *at;
        size_t more = size_of (c, f);
        if (bytes + more > fusion || alone (c, f) || !tensor_fuses (head->t, f->t)) {
            at = &f->next;
            continue;
        }
        bytes += more;
        *at = f->next;
        *end = f;
        end = &f->next;
        ++*n;
    }
    *end = NULL;
    chosen = head;
    for (c->tail = &c->ready; *c->tail;)
        c->tail = &(*c->tail)->next;
    return chosen;
}

static void emit_one (struct coordinator *c, size_t fusion)
{
    size_t n, i = 0;
    struct tensor_entry *list = choose (c, fusion, &n);
    uint32_t *ids = malloc (n * sizeof (*ids));

    if (!ids) {
        c->down->bad = true;
        return;
    }
    for (struct tensor_entry *f = list; f; f = f->next) {
        if (!f->id)
            tensor_entry_number (c, f);
        ids[i++] = f->id;
    }
    for (struct tensor_entry *f = list; f; f = f->next) {
        tensor_entry_reset (f);
        tensor_entry_used (c, f);
    }
    packet_number (c->down, DOWN_BATCH);
    packet_ids (c->down, ids, n);
    free (ids);
}

size_t coordinator_emit (struct coordinator *c, size_t fusion, size_t room)
{
    size_t n = 0;

    for (; n < room && c->ready; n++)
        emit_one (c, fusion);
    return n;
}

bool coordinator_waits (const struct coordinator *c)
{
    return c->ready != NULL;
}
