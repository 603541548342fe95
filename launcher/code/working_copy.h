/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the frozen code for one attempt, and what is left of it. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "runtime/base/error.h"

/* Make 'to' a copy of the folder 'from', an unpacked archive.  Its files get
 * copies (the file system's own where it can share their blocks): whatever a
 * script does to them, no other attempt sees it.  Its links get links, so that
 * large data stays where it is, but small files and those of checkpoints that
 * are not among 'exclude' (NULL-ended patterns, or NULL) get copies too: a
 * script that was run by hand has left them there, and would write them again.
 * What Python compiles is shared, in 'from'.
 *
 * Returns -1 with 'err'; the part that was made may then be removed.
 */
int working_copy_make (const char *from, const char *to, char *const *exclude,
                       struct slurmdl_error *err);

/* Whether all of the copy 'to' is as it was made, and nothing else is there. */
bool working_copy_is_clean (const char *from, const char *to);

/* Remove from the copy 'to' what is still as it was made. */
enum copy_rest {
    COPY_UNKNOWN = -1, /* it could not be read */
    COPY_GONE,         /* nothing was left, and 'to' is removed */
    COPY_WRITTEN,      /* a script has written something */
};
enum copy_rest working_copy_prune (const char *from, const char *to);

/* Copy the files in the folder 'from', which was pruned, over those in 'to'. */
int working_copy_add (const char *from, const char *to, struct slurmdl_error *err);

/* Whether a file has the name of a checkpoint: "best.pt". */
bool is_checkpoint_name (const char *name);

/* Whether there is a file in a folder, or in one below it. */
bool working_copy_has_files (const char *dir);

/* Call 'f' for each file, with its path below 'dir' and its size, until it
 * returns non-zero.
 */
int working_copy_each (const char *dir,
                       int (*f) (const char *path, const struct stat *st, void *arg), void *arg);
