/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's temporary folder in TMPDIR.  If the worker is killed, a later one removes it. */
#pragma once

#include <limits.h>

#include "runtime/base/error.h"

/* Names in the folder: a socket, and a copy of the frozen code. */
#define SCRATCH_SOCKET "s"
#define SCRATCH_CODE   "code"

/* Limits for the length of TMPDIR: none to speak of, or short enough for the path of a socket. */
enum { SCRATCH_ANY = PATH_MAX - 64, SCRATCH_SHORT = 40 };

struct scratch {
    int lock; /* locked while the folder is in use; -1: none */
    char path[PATH_MAX];
};

/* Create a folder with mode 0700 in TMPDIR, or in /tmp if the path TMPDIR is longer than 'longest'
 * or the folder cannot be created there.  First removes the folders of this user's killed workers.
 * Call scratch_remove() in any case.
 */
int scratch_make (struct scratch *s, int longest, struct slurmdl_error *err);
void scratch_remove (struct scratch *s);

/* Remove the folders of this user's workers that were killed on this machine. */
void scratch_clean (void);
