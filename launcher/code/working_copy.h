/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the frozen code, one for each attempt, and the files that attempts write there. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "runtime/base/error.h"

/* Make 'to' a copy of 'from', an unpacked archive.  Files are copied, by reflink if possible, so
 * that no attempt sees changes that the script of another one makes.  Links stay links, so that
 * large data is not copied.
 *
 * Small files and checkpoints behind absolute links are the exception.  They probably come from a
 * run of the script by hand, and the script would write them again, so they are copied, too, unless
 * a pattern of the NULL-ended list 'exclude' (or NULL) matches.  All copies share Python's compiled
 * files, which are kept in 'from'.
 *
 * Returns -1 with 'err'; the caller may remove the incomplete copy.
 */
int working_copy_make (const char *from, const char *to, char *const *exclude,
                       struct slurmdl_error *err);

/* Whether nothing in the copy 'to' was changed, removed or added. */
bool working_copy_is_clean (const char *from, const char *to);

/* Remove everything from the copy 'to' that is unchanged since it was made. */
enum copy_rest {
    COPY_UNKNOWN = -1, /* 'to' could not be read */
    COPY_GONE,         /* nothing was left, so 'to' was removed, too */
    COPY_WRITTEN,      /* files that the script wrote are left */
};
enum copy_rest working_copy_prune (const char *from, const char *to);

/* Copy the files in 'from', a pruned copy, over those in 'to'; -1 with 'err'. */
int working_copy_add (const char *from, const char *to, struct slurmdl_error *err);

/* Whether a file name is that of a checkpoint, such as "best.pt". */
bool is_checkpoint_name (const char *name);

/* Whether a folder contains a non-empty regular file, at any depth. */
bool working_copy_has_files (const char *dir);

/* Call 'f' for each file below 'dir', with its path relative to 'dir', until 'f' returns nonzero,
 * and return that.
 */
int working_copy_each (const char *dir,
                       int (*f) (const char *path, const struct stat *st, void *arg), void *arg);
