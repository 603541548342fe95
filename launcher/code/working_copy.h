/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the frozen code for one attempt, and what the attempt wrote there. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "runtime/base/error.h"

/* Make 'to' a copy of the folder 'from', an unpacked archive.  Files are copied (by reflinks if the
 * file system can), so that no other attempt sees what a script does to them.  Links stay links, so
 * that large data stays where it is.  But linked small files and checkpoints that 'exclude'
 * (NULL-ended patterns, or NULL) does not match are copied as well: a script that was run by hand
 * left them there, and would write them again.  Python's compiled files are shared, in 'from'.
 *
 * Returns -1 with 'err'; the incomplete copy may then be removed.
 */
int working_copy_make (const char *from, const char *to, char *const *exclude,
                       struct slurmdl_error *err);

/* Whether the copy 'to' is unchanged and nothing was added. */
bool working_copy_is_clean (const char *from, const char *to);

/* Remove from the copy 'to' what is still as it was made. */
enum copy_rest {
    COPY_UNKNOWN = -1, /* it could not be read */
    COPY_GONE,         /* nothing was left, and 'to' is removed */
    COPY_WRITTEN,      /* a script has written something */
};
enum copy_rest working_copy_prune (const char *from, const char *to);

/* Copy the files in the pruned folder 'from' over those in 'to'. */
int working_copy_add (const char *from, const char *to, struct slurmdl_error *err);

/* Whether a file has the name of a checkpoint: "best.pt". */
bool is_checkpoint_name (const char *name);

/* Whether there is a non-empty file in a folder or below it. */
bool working_copy_has_files (const char *dir);

/* Call 'f' for each file, with its path below 'dir' and its size, until it
 * returns non-zero.
 */
int working_copy_each (const char *dir,
                       int (*f) (const char *path, const struct stat *st, void *arg), void *arg);
