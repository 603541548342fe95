/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what is wrong with an experiment file. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* Where a setting comes from (setting.h). */
struct origin {
    int line;           /* of the file, 0: it is not there */
    const char *option; /* "KEY=VALUE" of --set, NULL: from the file */
};
#define NO_ORIGIN ((struct origin){ 0, NULL })

/* From a line of the text on it comes from this line of this file. */
struct text_part {
    int first;
    char *file;
    int line;
};

/* What is wrong, a line each: "exp.conf:12: unknown key 'sercher' ...". */
struct problems {
    char *text;
    size_t size;
    FILE *stream;
    int count;
    const char *file;        /* that problem_at() names */
    char **about;            /* keys and groups that have a line, NULL-ended */
    struct text_part *parts; /* of a text with @include, else NULL */
    size_t nparts;
    const char *point, *words; /* as in struct edit */
};

/* Begin a list without a problem; returns 0. */
int problems_open (struct problems *p);
void problems_close (struct problems *p); /* p->text stays until freed */

/* Add a line about a problem, as printf(3) would print it. */
void problem (struct problems *p, const char *fmt, ...) __attribute__ ((format (printf, 2, 3)));

/* The same after "FILE:LINE: ", or the option, or "FILE: ". */
void problem_at (struct problems *p, struct origin origin, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* A line of the same form about what is no error. */
void note_at (struct problems *p, struct origin origin, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* From line 'first' of the text on it is that of 'file' from 'line' on; parts
 * are added in their order.
 */
void problems_part (struct problems *p, int first, const char *file, int line);

/* The file and line from which a line of the text comes. */
const char *problems_file (const struct problems *p, int *line);

/* Note that a problem is about a key or group, which was misspelt, say; and
 * whether one is about the key or a group that it is in ("": the
 * file): that the key is missing would then be a second line about one mistake.
 */
void problem_about (struct problems *p, const char *key);
bool problem_is_about (const struct problems *p, const char *key);
