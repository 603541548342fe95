/* SPDX-License-Identifier: Apache-2.0 */
/* An environment in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/rank/task.h"

struct env_entry {
    char *name;
    char *value; /* NULL: taken away */
    bool user;   /* exported where dl env runs */
    bool given;  /* by the plugin */
    bool kept;   /* the plugin looked: the user's stays */
};

struct env_entries {
    struct env_entry *list;
    size_t n, capacity;
};

/* Functions over it; 'e' must stay where it is. */
struct variables entries_variables (struct env_entries *e);
int entries_put (struct env_entries *e, const char *name, const char *value);
const struct env_entry *entries_find (const struct env_entries *e, const char *name);
/* Leave only what was given or kept. */
void entries_prune (struct env_entries *e);
void entries_free (struct env_entries *e);
