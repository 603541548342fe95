/* SPDX-License-Identifier: Apache-2.0 */
/* Read tensors of a checkpoint, and compare their checksums. */
#ifndef RUNTIME_CHECK_H
#define RUNTIME_CHECK_H

#include <stdatomic.h>

#include "runtime/manifest.h"

/* Read what the slab 'to' of the tensor 'row' has into 'data' (the host's;
 * NULL: nothing is kept), and verify each saved slab that it touches, whole.
 *
 * Returns 0, or -1: EBADMSG (damaged, or cut), ECANCELED once '*cancel' is
 * nonzero ('cancel' may be NULL), ENOMEM, EIO.
 */
int read_tensor (int fd,
                 const struct manifest *m,
                 const struct manifest_row *row,
                 const struct slab *to,
                 void *data,
                 atomic_int *cancel);

/* Verify a file, all of it, as the disk has it; its step must be 'step'. */
int check_file (const char *path, int64_t step, atomic_int *cancel);

/* Verify all data of an open file. */
int check_data (int fd, const struct manifest *m, atomic_int *cancel);

struct slurmdl_checkpoint {
    int fd;
    struct manifest m;
    char *path;
};

/* Open a file of which all will be read soon, or not. */
struct slurmdl_checkpoint *
checkpoint_open (const char *path, bool all, struct slurmdl_error *err);

#endif
