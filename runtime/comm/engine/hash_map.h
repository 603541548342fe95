/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from numbers to pointers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An empty one is all zero. */
struct map {
    struct map_slot {
        uint64_t key;
        void *value;
    } * slots;
    size_t room, used, filled; /* 'filled' includes removed slots */
};

void *map_get (const struct map *m, uint64_t key); /* NULL: none */

/* Set a value; NULL removes it.  Returns -1 if out of memory. */
int map_set (struct map *m, uint64_t key, void *value);

/* Iterate over the values in no particular order, starting with '*at' = 0; NULL after the last. The
 * returned value may be removed.
 */
void *map_next (const struct map *m, size_t *at);

void map_free (struct map *m); /* does not free the values */

uint64_t map_hash (const char *text); /* FNV-1a */
