/* SPDX-License-Identifier: Apache-2.0 */
/* Run git(1) to learn about a folder. */
#pragma once

#include <stddef.h>

/* The output of a git command in 'dir', which the caller frees.  NULL if the command fails, prints
 * 'max' bytes or more, or takes longer than 20 s.  Settings of the work tree cannot make git run
 * programs.
 */
char *git_output (const char *dir, char *const *args, size_t max);

/* The files of a work tree and its submodules that git tracks or at least does not ignore. */
struct git_files {
    char **list; /* "H PATH" if tracked, else "? PATH"; ordered by path */
    size_t n;
    char *text;
};

/* Returns -1 if git cannot list them. */
int git_files_read (const char *root, struct git_files *g);
void git_files_free (struct git_files *g);

/* How git sees a path: 'H' if tracked, '?' if neither tracked nor ignored, ' ' if unknown.  A
 * folder is 'H' if git tracks anything below it, else '?' if git lists anything below it.
 */
char git_files_kind (const struct git_files *g, const char *path);
