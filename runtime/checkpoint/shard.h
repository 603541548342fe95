/* SPDX-License-Identifier: Apache-2.0 */
/* Read one saved slab of a tensor, and compare its checksum. */
#pragma once

#include <stdatomic.h>
#include <stddef.h>

#include "runtime/checkpoint/manifest.h"

/* Memory that one thread reads into, for all that it reads; all zero: none. */
struct shard_scratch {
    unsigned char *data;
    size_t size;
};

/* Read the saved slab 'shard' of a tensor, whole, and verify it; what of it the
 * slab 'to' has goes into 'data' (of 'to', the host's; NULL: nothing is kept).
 *
 * Returns 0, or -1: EBADMSG (damaged, or cut), ECANCELED once '*cancel' is
 * nonzero ('cancel' may be NULL), ENOMEM, EIO.
 */
int read_shard (int fd, const struct manifest_row *row, const struct shard_row *shard,
                const struct slab *to, void *data, struct shard_scratch *scratch,
                atomic_int *cancel);
