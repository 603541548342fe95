/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what is wrong with an experiment file. */
#ifndef LAUNCHER_CONFIG_DIAGNOSTICS_H
#define LAUNCHER_CONFIG_DIAGNOSTICS_H

#include <stdbool.h>
#include <stdio.h>

/* Where a setting comes from (option_origin.h). */
struct origin {
    int line;           /* of the file, 0: it is not there */
    const char *option; /* "KEY=VALUE" of --set, NULL: from the file */
};
#define NO_ORIGIN ((struct origin){ 0, NULL })

/* What is wrong, a line each: "exp.conf:12: unknown key 'sercher' ...". */
struct problems {
    char *text;
    size_t size;
    FILE *stream;
    int count;
    const char *file; /* that problem_at() names */
    char **about;     /* keys and groups that have a line, NULL-ended */
};

int problems_open (struct problems *p);
void problems_close (struct problems *p); /* p->text stays until freed */

void problem (struct problems *p, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

/* The same after "FILE:LINE: ", or the option, or "FILE: ". */
void problem_at (struct problems *p, struct origin origin, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* A line of the same form about what is no error. */
void note_at (struct problems *p, struct origin origin, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Note that a problem is about a key or group, which was misspelt, say; and
 * whether one is about the key or a group that it is in: that the key is
 * missing would then be a second line about one mistake.
 */
void problem_about (struct problems *p, const char *key);
bool problem_is_about (const struct problems *p, const char *key);

#endif
