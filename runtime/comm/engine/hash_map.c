/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map with open addressing and linear probing. */
#include "runtime/comm/engine/hash_map.h"

#include <stdlib.h>
#include <string.h>

static char gone; /* marks a slot whose entry was removed */

static size_t first_slot (const struct map *m, uint64_t key)
{
    return (size_t)(key * 0x9e3779b97f4a7c15u >> 32) & (m->room - 1);
}

/* The slot of 'key', or the empty slot where it belongs. */
static struct map_slot *find_map_slot (const struct map *m, uint64_t key)
{
    size_t i = first_slot (m, key);

    while (m->slots[i].value && (m->slots[i].key != key || m->slots[i].value == &gone))
        i = (i + 1) & (m->room - 1);
    return m->slots + i;
}

void *map_get (const struct map *m, uint64_t key)
{
    return m->room ? find_map_slot (m, key)->value : NULL;
}

static int grow_map (struct map *m)
{
    struct map bigger = { .room = 64 };

    while (bigger.room < 4 * m->used)
        bigger.room *= 2;
    if (!(bigger.slots = calloc (bigger.room, sizeof (*bigger.slots))))
        return -1;
    for (size_t i = 0; i < m->room; i++)
        if (m->slots[i].value && m->slots[i].value != &gone)
            *find_map_slot (&bigger, m->slots[i].key) = m->slots[i];
    bigger.used = m->used;
    bigger.filled = m->used;
    free (m->slots);
    *m = bigger;
    return 0;
}

int map_set (struct map *m, uint64_t key, void *value)
{
    struct map_slot *s;

    if (value && 2 * (m->filled + 1) > m->room && grow_map (m) < 0)
        return -1;
    if (!m->room)
        return 0;
    s = find_map_slot (m, key);
    if (!s->value && !value)
        return 0;
    if (!s->value) {
        m->filled++;
        m->used++;
    }
    if (!value)
        m->used--;
    s->key = key;
    s->value = value ? value : &gone;
    return 0;
}

void *map_next (const struct map *m, size_t *at)
{
    while (*at < m->room) {
        void *v = m->slots[(*at)++].value;
        if (v && v != &gone)
            return v;
    }
    return NULL;
}

void map_free (struct map *m)
{
    free (m->slots);
    memset (m, 0, sizeof (*m));
}

uint64_t map_hash (const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}
