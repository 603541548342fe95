/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's folder in TMPDIR, removed by a later one if this one was killed.
 */
#pragma once

#include <limits.h>

#include "runtime/base/error.h"

/* What may be in it: a socket, and a copy of the frozen code. */
#define SCRATCH_SOCKET "s"
#define SCRATCH_CODE   "code"

/* The path of a socket is short. */
enum { SCRATCH_ANY = PATH_MAX - 64, SCRATCH_SHORT = 40 };

struct scratch {
    int lock; /* held as long as it is used, -1: none */
    char path[PATH_MAX];
};

/* Make a folder, mode 0700, in TMPDIR, or in /tmp if TMPDIR is longer than
 * 'longest', full or closed.  Those of this user's workers that were killed are
 * removed.
 * scratch_remove() in any case.
 */
int scratch_make (struct scratch *s, int longest, struct slurmdl_error *err);
void scratch_remove (struct scratch *s);

/* Remove those of this user's workers that were killed on this machine. */
void scratch_clean (void);
