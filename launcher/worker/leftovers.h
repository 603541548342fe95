/* SPDX-License-Identifier: Apache-2.0 */
/* Hidden files that writers left when they were killed. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Call 'f' for each such file of an experiment without workers, but for those
 * of checkpoints: beside its own files, in log/ and workers/, and in the
 * attempts that ended without a result.  A command that is at work on one of
 * them writes it again (publish.h).
 *
 * Returns what 'f' returned if that is not 0, or -1 with errno.
 */
int leftovers_find (const struct sweep *s, int (*f) (const char *path, int64_t bytes, void *arg),
                    void *arg);

/* Remove those in the folder of an attempt that was given up.  If its worker
 * only hangs, and writes one just now, it has lost the attempt all the same.
 */
void leftovers_clean_attempt (const struct sweep *s, long trial, long attempt);
