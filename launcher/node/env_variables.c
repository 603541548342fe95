/* SPDX-License-Identifier: Apache-2.0 */
/* An environment in memory, for the functions of the plugin. */
#include "launcher/node/env_variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"

static struct env_entry *find (const struct env_entries *e, const char *name)
{
    for (size_t i = 0; i < e->n; i++)
        if (!strcmp (e->list[i].name, name))
            return &e->list[i];
    return NULL;
}

const struct env_entry *entries_find (const struct env_entries *e, const char *name)
{
    return find (e, name);
}

static struct env_entry *add (struct env_entries *e, const char *name)
{
    struct env_entry *at = find (e, name);

    if (at)
        return at;
    if (array_reserve (&e->list, &e->capacity, e->n, 1, sizeof (*e->list)) < 0)
        return NULL;
    at = &e->list[e->n];
    *at = (struct env_entry){ .name = strdup (name) };
    if (!at->name)
        return NULL;
    e->n++;
    return at;
}

int entries_put (struct env_entries *e, const char *name, const char *value)
{
    struct env_entry *at = add (e, name);

    if (!at)
        return -1;
    free (at->value);
    at->value = strdup (value);
    at->user = false;
    return at->value ? 0 : -1;
}

void entries_prune (struct env_entries *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->n; i++)
        if (e->list[i].given || e->list[i].kept)
            e->list[n++] = e->list[i];
        else {
            free (e->list[i].name);
            free (e->list[i].value);
        }
    e->n = n;
}

void entries_free (struct env_entries *e)
{
    for (size_t i = 0; i < e->n; i++) {
        free (e->list[i].name);
        free (e->list[i].value);
    }
    free (e->list);
    *e = (struct env_entries){ NULL };
}

static int get (void *arg, const char *name, char *buf, int size)
{
    struct env_entry *at = find (arg, name);

    if (!at || !at->value)
        return -1;
    at->kept = at->user && !at->given && strncmp (name, "DL_", 3);
    return snprintf (buf, (size_t)size, "%s", at->value) < size ? 0 : 1;
}

static void set (void *arg, const char *name, const char *value)
{
    struct env_entry *at = add (arg, name);

    if (!at)
        abort (); /* a wrong answer would be worse */
    free (at->value);
    if (!(at->value = strdup (value)))
        abort ();
    at->given = true;
    at->kept = false;
}

static void unset (void *arg, const char *name)
{
    struct env_entry *at = find (arg, name);

    if (!at)
        return;
    free (at->value);
    at->value = NULL;
    at->given = true;
}

struct variables entries_variables (struct env_entries *e)
{
    return (struct variables){ get, set, unset, e };
}
