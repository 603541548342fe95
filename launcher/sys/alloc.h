/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that does not fail: if memory runs out, the program ends. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Each prints "dl: out of memory" and calls exit(EXIT_IO) if it cannot allocate.  That is fine for
 * the command dl: the decision log is never left half-written, and a worker that dies is replaced.
 * Libraries and the plugin run in other people's processes and must not call these functions.
 *
 * The caller frees what they return with free().
 */
void *xmalloc (size_t size);
void *xcalloc (size_t n, size_t size); /* zeroed */
void *xrealloc (void *p, size_t size);
void *xreallocarray (void *p, size_t n, size_t size);
void *xmemdup (const void *p, size_t size);
char *xstrdup (const char *text); /* NULL returns NULL */
char *xstrndup (const char *text, size_t max);
char *xasprintf (const char *format, ...) __attribute__ ((format (printf, 1, 2)));
char *xvasprintf (const char *format, va_list ap) __attribute__ ((format (printf, 1, 0)));

/* Make room for one more element in an array of 'n' elements (NULL and 0 begin one), as
 * array_grow() does: nobody keeps its capacity.
 *
 *     XGROW (list, n);
 *     list[n++] = element;
 */
#define XGROW(array, n) ((array) = xgrow ((array), (n), sizeof (*(array))))
void *xgrow (void *array, size_t n, size_t size);

/* A stream whose output becomes '*text', as of open_memstream(): '*text' and '*size' are valid
 * after xclose_memstream(), and until then after fflush().
 */
FILE *xopen_memstream (char **text, size_t *size);
void xclose_memstream (FILE *stream);

/* Print "dl: out of memory" and exit.  Call it where a library says that memory ran out. */
void out_of_memory (void) __attribute__ ((noreturn));
