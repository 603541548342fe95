/* SPDX-License-Identifier: Apache-2.0 */
/* Slurm's configuration files, with the line of each parameter. */
#pragma once

#include <stddef.h>

enum { DOCTOR_FILE = 1024 * 1024 };

/* A line that is no comment, of a file and what it includes. */
struct conf_line {
    char *file;
    int line;
    char *text; /* without white space around it, and without a comment */
};

struct conf {
    struct conf_line *list;
    size_t n;
};

/* Read a file of the system, at most DOCTOR_FILE bytes of a plain one, below
 * 'root'.  Returns NULL with errno; the caller frees it.
 */
char *doctor_read (const char *root, const char *path);

/* Add the lines of 'path' and of those that its "include" lines name (with
 * wildcards, as plugstack.conf; relative to 'dir').  Returns -1 with errno if
 * the first cannot be read.
 */
int conf_read (struct conf *c, const char *root, const char *path);

/* Release the lines; 'c' is empty afterwards. */
void conf_free (struct conf *c);

/* The last line KEY=VALUE, whatever the case of the letters; NULL: none. */
const struct conf_line *conf_find (const struct conf *c, const char *key);
