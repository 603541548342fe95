/* SPDX-License-Identifier: Apache-2.0 */
/* Find table rows by name. */
#include "runtime/storage/name_index.h"

#include <stdlib.h>
#include <string.h>

/* Linear probing.  A slot holds the number of the row plus 1, or 0 if it is empty. */

static const char *slot_name (const void *rows, size_t size, uint32_t slot)
{
    return (const char *)rows + (slot - 1) * size;
}

/* FNV-1a */
static size_t home_of (const struct name_index *x, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return (size_t)(hash ^ hash >> 32) & (x->room - 1);
}

void *name_index_find (const struct name_index *x, const void *rows, size_t size, const char *name)
{
    if (!x->room)
        return NULL;
    for (size_t at = home_of (x, name); x->slots[at]; at = (at + 1) & (x->room - 1)) {
        const char *found = slot_name (rows, size, x->slots[at]);
        if (!strcmp (found, name))
            return (void *)found;
    }
    return NULL;
}

static void put_slot (struct name_index *x, const char *name, uint32_t slot)
{
    size_t at = home_of (x, name);

    while (x->slots[at])
        at = (at + 1) & (x->room - 1);
    x->slots[at] = slot;
}

static int grow_index (struct name_index *x, const void *rows, size_t size)
{
    struct name_index new = { .room = x->room ? 2 * x->room : 64, .used = x->used };

    if (!(new.slots = calloc (new.room, sizeof (*new.slots))))
        return -1;
    for (size_t at = 0; at < x->room; at++)
        if (x->slots[at])
            put_slot (&new, slot_name (rows, size, x->slots[at]), x->slots[at]);
    free (x->slots);
    *x = new;
    return 0;
}

int name_index_add (struct name_index *x, const void *rows, size_t size, size_t i)
{
    if (2 * (x->used + 1) > x->room && grow_index (x, rows, size) < 0)
        return -1;
    put_slot (x, slot_name (rows, size, (uint32_t)i + 1), (uint32_t)i + 1);
    x->used++;
    return 0;
}

static size_t slot_of (const struct name_index *x, const void *rows, size_t size, size_t i)
{
    size_t at = home_of (x, slot_name (rows, size, (uint32_t)i + 1));

    while (x->slots[at] != i + 1)
        at = (at + 1) & (x->room - 1);
    return at;
}

/* Close the gap: move the entries behind it closer to their home slots. */
void name_index_remove (struct name_index *x, const void *rows, size_t size, size_t i)
{
    size_t mask = x->room - 1;
    size_t gap = slot_of (x, rows, size, i);

    for (size_t at = (gap + 1) & mask; x->slots[at]; at = (at + 1) & mask) {
        size_t home = home_of (x, slot_name (rows, size, x->slots[at]));
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        x->slots[gap] = x->slots[at];
        gap = at;
    }
    x->slots[gap] = 0;
    x->used--;
}

void name_index_move (struct name_index *x, const void *rows, size_t size, size_t i, size_t to)
{
    x->slots[slot_of (x, rows, size, i)] = (uint32_t)to + 1;
}

void name_index_free (struct name_index *x)
{
    free (x->slots);
    *x = (struct name_index){ 0 };
}
