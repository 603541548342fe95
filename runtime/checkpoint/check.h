/* SPDX-License-Identifier: Apache-2.0 */
/* Open a checkpoint, list, read and verify its tensors. */
#pragma once

#include <stdatomic.h>

#include "runtime/checkpoint/manifest.h"

/* Verify a whole file as it is on the disk; its step must be 'step'. */
int check_file (const char *path, int64_t step, atomic_int *cancel);

struct slurmdl_checkpoint {
    int fd;
    struct manifest m;
    char *path;
};
