/* SPDX-License-Identifier: Apache-2.0 */
/* Protect memory, keep states. */
#include "runtime/run/region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/run/run.h"

static const char states[] = "state/";

/* Each part of the path is a link's name: "." and "" are not. */
bool good_dataset_name (const char *name)
{
    size_t n = strlen (name);

    if (n == 0 || n >= DATASET_NAME_SIZE || name[0] == '/' || name[n - 1] == '/'
        || strstr (name, "//") || name[0] == '.' || strstr (name, "/./")
        || (n > 1 && !strcmp (name + n - 2, "/.")) || !is_utf8 (name))
        return false;
    return strcmp (name, "manifest") && strncmp (name, "manifest/", 9)
           && strcmp (name, "shards") && strncmp (name, "shards/", 7);
}

int tensor_bytes (enum slurmdl_type type,
                  int ndims,
                  const uint64_t *dims,
                  uint64_t *bytes)
{
    *bytes = slurmdl_type_size (type);
    if (*bytes == 0 || ndims < 0 || ndims > DIMS_MAX) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < ndims; i++)
        if (__builtin_mul_overflow (*bytes, dims[i], bytes)) {
            errno = EOVERFLOW;
            return -1;
        }
    return 0;
}

bool regions_shared (const struct regions *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].shard)
            return true;
    return false;
}

struct region *regions_find (const struct regions *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp (r->list[i].name, name))
            return &r->list[i];
    return NULL;
}

static int put (struct regions *r, const struct region *new)
{
    struct region *have = regions_find (r, new->name);
    struct region *list;

    if (!have) {
        if (!(list = realloc (r->list, (r->n + 1) * sizeof (*list))))
            return -1;
        r->list = list;
        list[r->n++] = *new;
        return 0;
    }
    if (have->state)
        free (have->data);
    *have = *new;
    return 0;
}

void regions_clear (struct regions *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].state)
            free (r->list[i].data);
    free (r->list);
    *r = (struct regions){ 0 };
}

/* ---- protect ---- */

static int protect (struct slurmdl *run,
                    const char *name,
                    struct region *new,
                    const uint64_t *dims)
{
    uint64_t all;

    if (!name || !good_dataset_name (name) || is_state (name)
        || !strcmp (name, "state")) {
        errno = EINVAL;
        return -1;
    }
    snprintf (new->name, sizeof (new->name), "%s", name);
    if (tensor_bytes (new->type, new->slab.ndims, dims, &all) < 0
        || tensor_bytes (
               new->type, new->slab.ndims, new->slab.dims, &new->bytes)
               < 0)
        return -1;
    for (int i = 0; i < new->slab.ndims; i++)
        new->dims[i] = dims[i];
    if (!slab_fits (&new->slab, new->dims) || (new->bytes && !new->data)) {
        errno = EINVAL;
        return -1;
    }
    return put (&run->regions, new);
}

int slurmdl_protect (struct slurmdl *run,
                     const char *name,
                     enum slurmdl_type type,
                     int ndims,
                     const uint64_t *dims,
                     void *data)
{
    struct region new = { .type = type, .data = data };

    if (ndims > 0 && !dims) {
        errno = EINVAL;
        return -1;
    }
    new.slab.ndims = ndims;
    for (int i = 0; ndims <= DIMS_MAX && i < ndims; i++)
        new.slab.dims[i] = dims[i];
    return protect (run, name, &new, dims);
}

int slurmdl_protect_shard (struct slurmdl *run,
                           const char *name,
                           enum slurmdl_type type,
                           int ndims,
                           const uint64_t *global,
                           const uint64_t *offset,
                           const uint64_t *local,
                           void *data)
{
    struct region new = { .type = type, .data = data, .shard = true };

    if (ndims < 1 || ndims > DIMS_MAX || !global || !offset || !local) {
        errno = EINVAL;
        return -1;
    }
    new.slab.ndims = ndims;
    for (int i = 0; i < ndims; i++) {
        new.slab.offset[i] = offset[i];
        new.slab.dims[i] = local[i];
    }
    return protect (run, name, &new, global);
}

int slurmdl_unprotect (struct slurmdl *run, const char *name)
{
    struct regions *all = &run->regions;
    struct region *r;
    char dataset[DATASET_NAME_SIZE];
    bool own;

    if (!name) {
        regions_clear (all);
        return 0;
    }
    r = regions_find (all, name);
    if (!r && state_dataset (name, run->rank, dataset, &own) == 0)
        r = regions_find (all, dataset);
    if (!r) {
        errno = ENOENT;
        return -1;
    }
    if (r->state)
        free (r->data);
    *r = all->list[--all->n];
    return 0;
}

/* ---- states ---- */

bool is_state (const char *dataset)
{
    return !strncmp (dataset, states, strlen (states));
}

int state_dataset (const char *name, long rank, char *buf, bool *own)
{
    const char *r = strstr (name, "%r");
    int n;

    *own = r != NULL;
    n = r ? snprintf (buf,
                      DATASET_NAME_SIZE,
                      "%s%.*s%ld%s",
                      states,
                      (int)(r - name),
                      name,
                      rank,
                      r + 2)
          : snprintf (buf, DATASET_NAME_SIZE, "%s%s", states, name);
    if (n < DATASET_NAME_SIZE && *name && good_dataset_name (buf))
        return 0;
    errno = EINVAL;
    return -1;
}

int regions_put_state (
    struct regions *r, const char *name, void *data, size_t n, bool own)
{
    struct region new = { .type = SLURMDL_U8,
                          .bytes = n,
                          .data = data,
                          .shard = own,
                          .state = true };

    new.dims[0] = n;
    new.slab = slab_whole (1, new.dims);
    snprintf (new.name, sizeof (new.name), "%s", name);
    return put (r, &new);
}

int slurmdl_state (struct slurmdl *run,
                   const char *name,
                   const void *bytes,
                   size_t n)
{
    char dataset[DATASET_NAME_SIZE];
    bool own;
    void *copy;

    if (state_dataset (name, run->rank, dataset, &own) < 0
        || !(copy = malloc (n + 1)))
        return -1;
    if (n)
        memcpy (copy, bytes, n);
    if (regions_put_state (&run->regions, dataset, copy, n, own) == 0)
        return 0;
    free (copy);
    return -1;
}

int slurmdl_read_state (struct slurmdl *run,
                        const char *name,
                        void **bytes,
                        size_t *n)
{
    char dataset[DATASET_NAME_SIZE];
    const struct region *r;
    struct slurmdl_tensor t;
    int64_t i;
    bool own;

    *bytes = NULL;
    *n = 0;
    if (state_dataset (name, run->rank, dataset, &own) < 0)
        return -1;
    if (!run->from) {
        if (!(r = regions_find (&run->regions, dataset))) {
            errno = ENOENT;
            return -1;
        }
        if ((*bytes = malloc (r->bytes + 1)))
            memcpy (*bytes, r->data, *n = r->bytes);
        return *bytes ? 0 : -1;
    }
    i = slurmdl_checkpoint_find_tensor (run->from, dataset);
    if (i < 0 || slurmdl_checkpoint_info (run->from, (size_t)i, &t) < 0
        || !(*bytes = malloc (t.bytes + 1)))
        return -1;
    *n = t.bytes;
    if (slurmdl_checkpoint_read (run->from, dataset, NULL, NULL, *bytes, NULL)
        == 0)
        return 0;
    free (*bytes);
    *bytes = NULL;
    return -1;
}
