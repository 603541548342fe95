/* SPDX-License-Identifier: Apache-2.0 */
/* Protected memory and states: the contents of a run's checkpoints. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/array.h"
#include "runtime/run/run.h"
#include "runtime/storage/tensor.h"

static const char state_prefix[] = "state/";

bool regions_shared (const struct regions *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->list[i].shard)
            return true;
    return false;
}

struct region *regions_find (const struct regions *r, const char *name)
{
    return name_index_find (&r->names, r->list, sizeof (*r->list), name);
}

static int put_region (struct regions *r, const struct region *new)
{
    struct region *have = regions_find (r, new->name);
    struct region *list;

    if (!have) {
        if (!(list = array_grow (r->list, r->n, sizeof (*list))))
            return -1;
        r->list = list;
        list[r->n] = *new;
        if (name_index_add (&r->names, list, sizeof (*list), r->n) < 0)
            return -1;
        r->n++;
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
    name_index_free (&r->names);
    *r = (struct regions){ 0 };
}

static int protect (struct slurmdl *run, const char *name, struct region *new, const uint64_t *dims)
{
    uint64_t all;

    if (!name || !tensor_name_ok (name) || is_state (name) || !strcmp (name, "state")) {
        errno = EINVAL;
        return -1;
    }
    snprintf (new->name, sizeof (new->name), "%s", name);
    if (tensor_bytes (new->type, new->slab.ndims, dims, &all) < 0
        || tensor_bytes (new->type, new->slab.ndims, new->slab.dims, &new->bytes) < 0)
        return -1;
    for (int i = 0; i < new->slab.ndims; i++)
        new->dims[i] = dims[i];
    if (!slab_fits (&new->slab, new->dims) || (new->bytes && !new->data)) {
        errno = EINVAL;
        return -1;
    }
    return put_region (&run->regions, new);
}

int slurmdl_protect (struct slurmdl *run, const char *name, enum slurmdl_type type, int ndims,
                     const uint64_t *dims, void *data)
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

int slurmdl_protect_shard (struct slurmdl *run, const char *name, enum slurmdl_type type, int ndims,
                           const uint64_t *global, const uint64_t *offset, const uint64_t *local,
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
    size_t at;
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
    at = (size_t)(r - all->list);
    name_index_remove (&all->names, all->list, sizeof (*r), at);
    if (at != --all->n) {
        name_index_move (&all->names, all->list, sizeof (*r), all->n, at);
        *r = all->list[all->n];
    }
    return 0;
}

bool is_state (const char *dataset)
{
    return !strncmp (dataset, state_prefix, strlen (state_prefix));
}

int state_dataset (const char *name, long rank, char *buf, bool *own)
{
    const char *r = strstr (name, "%r");
    int n;

    *own = r != NULL;
    n = r ? snprintf (buf, DATASET_NAME_SIZE, "%s%.*s%ld%s", state_prefix, (int)(r - name), name,
                      rank, r + 2)
          : snprintf (buf, DATASET_NAME_SIZE, "%s%s", state_prefix, name);
    if (n < DATASET_NAME_SIZE && *name && tensor_name_ok (buf))
        return 0;
    errno = EINVAL;
    return -1;
}

int regions_put_state (struct regions *r, const char *name, void *data, size_t n, bool own)
{
    struct region new = {
        .type = SLURMDL_U8, .bytes = n, .data = data, .shard = own, .state = true
    };

    new.dims[0] = n;
    new.slab = slab_whole (1, new.dims);
    snprintf (new.name, sizeof (new.name), "%s", name);
    return put_region (r, &new);
}
