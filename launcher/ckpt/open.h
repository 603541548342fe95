/* SPDX-License-Identifier: Apache-2.0 */
/* Open the checkpoint that an argument of dl ckpt names. */
#pragma once

#include <stddef.h>

#include "runtime/slurmdl.h"

/* A checkpoint, or the newest one that verifies in a trial's folder.  NULL
 * after a line on stderr, with the exit status in '*rv'.
 */
struct slurmdl_checkpoint *ckpt_open (const char *path, int *rv);

/* Call 'f' for a file; for a folder of a trial or an attempt, for each of its
 * checkpoints, damaged ones too.  Returns how often.
 */
size_t ckpt_each (const char *path,
                  void (*f) (const char *path, void *arg),
                  void *arg);

/* "[2, 3]"; of a scalar "[]" */
void ckpt_shape (char *buf, size_t size, const struct slurmdl_tensor *t);
