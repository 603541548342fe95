/* SPDX-License-Identifier: Apache-2.0 */
/* States: put them into the next checkpoints, read those that were restored. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/run/run.h"

int slurmdl_state (struct slurmdl *run, const char *name, const void *bytes, size_t n)
{
    char dataset[DATASET_NAME_SIZE];
    bool own;
    void *copy;

    if (state_dataset (name, run->rank, dataset, &own) < 0 || !(copy = malloc (n + 1)))
        return -1;
    if (n)
        memcpy (copy, bytes, n);
    if (regions_put_state (&run->regions, dataset, copy, n, own) == 0)
        return 0;
    free (copy);
    return -1;
}

int slurmdl_restored_origin (const struct slurmdl *run, struct slurmdl_origin *origin)
{
    if (run->from)
        return slurmdl_checkpoint_origin (run->from, origin);
    errno = ENOENT;
    return -1;
}

int slurmdl_read_state (struct slurmdl *run, const char *name, void **bytes, size_t *n)
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
    if (slurmdl_checkpoint_read (run->from, dataset, NULL, NULL, *bytes, NULL) == 0)
        return 0;
    free (*bytes);
    *bytes = NULL;
    return -1;
}
