/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of dl ckpt share. */
#ifndef LAUNCHER_CKPT_CKPT_H
#define LAUNCHER_CKPT_CKPT_H

#include "launcher/sys/settings.h"
#include "runtime/slurmdl.h"

/* A checkpoint, or the newest one that verifies in a trial's folder.  NULL
 * after a line on stderr, with the exit status in '*rv'.
 */
struct slurmdl_checkpoint *ckpt_open (const char *path, int *rv);

/* "[2, 3]"; of a scalar "[]" */
void ckpt_shape (char *buf, size_t size, const struct slurmdl_tensor *t);

int ckpt_diff (const struct settings *st);
int ckpt_extract (const struct settings *st);
int ckpt_export (const struct settings *st);
int ckpt_import (const struct settings *st);

/* Print the words that may follow 'ckpt', a line each. */
void ckpt_words (void);

/* The command: an exit status of launcher/sys/say.h. */
int cmd_ckpt (const struct settings *st);

#endif
