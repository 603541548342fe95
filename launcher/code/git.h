/* SPDX-License-Identifier: Apache-2.0 */
/* Ask git(1) about a folder. */
#pragma once

#include <stddef.h>

/* The output of a git command in 'dir', at most 'max' bytes; the caller frees it.  NULL if it fails
 * or takes longer than 20 s.
 */
char *git_output (const char *dir, char *const *args, size_t max);

/* The files of a work tree and its submodules that git tracks, or at least does not ignore. */
struct git_files {
    char **list; /* "H PATH" tracked, "? PATH" not; by path */
    size_t n;
    char *text;
};

/* Returns -1 if git cannot list them. */
int git_files_read (const char *root, struct git_files *g);
void git_files_free (struct git_files *g);

/* ' ': unknown to git, else 'H' or '?'; of a folder: the most of what is below
 * it.
 */
char git_files_kind (const struct git_files *g, const char *path);
