/* SPDX-License-Identifier: Apache-2.0 */
/* Read tensors of a checkpoint, and compare their checksums. */
#ifndef RUNTIME_CHECKPOINT_CHECK_H
#define RUNTIME_CHECKPOINT_CHECK_H

#include <stdatomic.h>

#include "runtime/checkpoint/manifest.h"

/* Read the saved slab 'shard' of a tensor, whole, and verify it; what of it the
 * slab 'to' has goes into 'data' (of 'to', the host's; NULL: nothing is kept).
 *
 * Returns 0, or -1: EBADMSG (damaged, or cut), ECANCELED once '*cancel' is
 * nonzero ('cancel' may be NULL), ENOMEM, EIO.
 */
int read_shard (int fd,
                const struct manifest_row *row,
                const struct shard_row *shard,
                const struct slab *to,
                void *data,
                atomic_int *cancel);

/* Verify a file, all of it, as the disk has it; its step must be 'step'. */
int check_file (const char *path, int64_t step, atomic_int *cancel);

/* Verify all data of an open file; '*bad' is the tensor that could not be read,
 * or NULL.
 */
int check_data (int fd,
                const struct manifest *m,
                long threads,
                atomic_int *cancel,
                const struct manifest_row **bad);

struct slurmdl_checkpoint {
    int fd;
    struct manifest m;
    char *path;
};

#endif
