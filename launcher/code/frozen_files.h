/* SPDX-License-Identifier: Apache-2.0 */
/* Which files an experiment freezes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/error.h"

struct experiment;

/* A file, an empty folder or a link. */
struct code_file {
    char *path;   /* relative to the root */
    char *target; /* of a link; else NULL */
    int64_t size;
    mode_t mode;
};

struct code_files {
    char *root; /* absolute path of the folder to freeze */
    bool is_git;
    struct code_file *list;     /* ordered by path within each folder */
    size_t n, nlinks, nfolders; /* all entries; links and empty folders among them */
    bool is_text;               /* only text is frozen, because there were too many files */
    int64_t bytes;
    char why[300];      /* why nothing is frozen; "": there is nothing to freeze */
    bool is_off;        /* the user turned freezing off, although there is code to freeze */
    char absolute[512]; /* a script that the command names by its absolute path, so that dl does not
                           freeze it; or "" */
};

/* Select the files of the experiment file's folder to freeze.  Skip experiments, and all folders on
 * the path to 'experiments', in which the new one is created: a link to one of these would make the
 * copy contain itself.
 */
enum code_selection {
    CODE_INVALID = -1, /* the group "code" is wrong; see 'err' */
    CODE_FROZEN,
    CODE_NONE, /* nothing is frozen; see c->why */
};
enum code_selection code_select (const struct experiment *e, const char *experiments,
                                 struct code_files *c, struct slurmdl_error *err);
void code_files_free (struct code_files *c);

/* Whether a path of 'len' characters has the name of a script, such as "train.py". */
bool code_is_script (const char *path, size_t len);
