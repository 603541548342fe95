/* SPDX-License-Identifier: Apache-2.0 */
/* Pointers found by a number. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* All zero: empty. */
struct map {
    struct map_slot {
        uint64_t key;
        void *value;
    } * slots;
    size_t room, used, filled; /* 'filled': with those that were removed */
};

void *map_get (const struct map *m, uint64_t key); /* NULL: none */

/* Set, or with NULL remove.  -1: no memory. */
int map_set (struct map *m, uint64_t key, void *value);

/* The values, in no order, from '*at' = 0 on; NULL after the last.  Removing
 * the one that was given is allowed. */
void *map_next (const struct map *m, size_t *at);

void map_free (struct map *m); /* not what it points to */

uint64_t map_hash (const char *text); /* FNV-1a */
