/* SPDX-License-Identifier: Apache-2.0 */
/* Which files an experiment freezes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"

struct experiment;

/* A file, or a link: 'target' is where it leads, else NULL. */
struct code_file {
    char *path; /* below the root */
    char *target;
    int64_t size;
    mode_t mode;
};

struct code_files {
    char *root; /* the folder that is frozen, absolute */
    bool is_git;
    struct code_file *list;     /* by path within each folder */
    size_t n, nlinks, nfolders; /* all, and among them links and folders (those
                                   that have nothing in them) */
    bool is_text;               /* there was too much: only text is frozen */
    int64_t bytes;
    char why[300];      /* if nothing is frozen: why; "": there is nothing to */
    bool is_off;        /* it could be frozen, and the user wants it not to be */
    char absolute[512]; /* a script that is named so, and is not frozen, or "" */
};

/* Select what is frozen of the experiment file's folder.  Experiments are not
 * among it, nor are folders on the way to that of the new one, 'experiments':
 * through a link to one a copy would lead to itself.
 */
enum code_selection {
    CODE_INVALID = -1, /* the group "code" is wrong */
    CODE_FROZEN,
    CODE_NONE, /* nothing is frozen; 'why' may say why */
};
enum code_selection code_select (const struct experiment *e, const char *experiments,
                                 struct code_files *c, struct slurmdl_error *err);
void code_files_free (struct code_files *c);

/* Whether a path of 'len' characters is one of a script: "train.py". */
bool code_is_script (const char *path, size_t len);
