/* SPDX-License-Identifier: Apache-2.0 */
/* Find rows of a table by their names. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The caller owns the rows: 'size' bytes each, a name first.  All zero: an empty index. */
struct name_index {
    uint32_t *slots;
    size_t room, used;
};

/* The row with this name, or NULL. */
void *name_index_find (const struct name_index *x, const void *rows, size_t size, const char *name);

/* Row 'i' has got its name, which no other row has.  Returns -1 if out of memory. */
int name_index_add (struct name_index *x, const void *rows, size_t size, size_t i);

/* Row 'i' is about to lose its name, or to move to 'to'. */
void name_index_remove (struct name_index *x, const void *rows, size_t size, size_t i);
void name_index_move (struct name_index *x, const void *rows, size_t size, size_t i, size_t to);

void name_index_free (struct name_index *x);
