/* SPDX-License-Identifier: Apache-2.0 */
/* Collect the errors in an experiment file. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Where a setting comes from (setting.h). */
struct origin {
    int line;           /* line in the file; 0: the file does not set it */
    const char *option; /* "KEY=VALUE" given to --set; NULL: it comes from the file */
};
#define NO_ORIGIN ((struct origin){ 0, NULL })

/* The text from line 'first' on comes from 'file', starting at its line 'line'. */
struct text_part {
    int first;
    char *file;
    int line;
};

/* The problems found, one per line: "exp.conf:12: unknown key 'sercher' ...". */
struct problems {
    char *text;
    size_t size;
    FILE *stream;
    int count;
    const char *file;        /* the name that problem_at() prints */
    char **about;            /* keys and groups already reported, NULL-terminated */
    struct text_part *parts; /* if the text has @include lines, else NULL */
    size_t nparts;
    const char *point, *words; /* as in struct edit */
};

/* Start an empty list. */
void problems_open (struct problems *p);
void problems_close (struct problems *p); /* the caller frees p->text */

/* Add one problem, formatted as by printf(3). */
void problem (struct problems *p, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* The same, with a prefix: "FILE:LINE: ", the --set option, or "FILE: ". */
void problem_at (struct problems *p, struct origin origin, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Add a note in the same form.  It does not count as a problem. */
void note_at (struct problems *p, struct origin origin, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Record that the text from line 'first' on comes from 'file', starting at its line 'line'.  Add
 * the parts in ascending order.
 */
void problems_part (struct problems *p, int first, const char *file, int line);

/* Map '*line' of the text to the file it comes from and to the line in that file. */
const char *problems_file (const struct problems *p, int *line);

/* problem_about() records that a problem with a key or group ("": the file) has been reported, for
 * example a misspelling.  problem_is_about() returns true if that happened to 'key' or to a group
 * that contains it: reporting the key as missing would then report one mistake twice.
 */
void problem_about (struct problems *p, const char *key);
bool problem_is_about (const struct problems *p, const char *key);
