/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: NULL-ended lists of them, and which are safe as names and words. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Add a copy of a text, of its first 'len' bytes, of what printf(3) would
 * print, or of each text of a list (NULL: an empty one) to a NULL-ended list
 * (NULL: none yet).  They return 0: memory that runs out ends the program (alloc.h).
 */
int strings_add (char ***list, const char *text);
int strings_add_part (char ***list, const char *text, size_t len);
int strings_addf (char ***list, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
int strings_add_all (char ***list, char *const *more);

/* Whether a NULL-ended list (NULL: an empty one) has a text. */
bool strings_contain (const char *const *list, const char *text);

/* Free a NULL-ended list and its strings. */
void strings_free (char **list);

/* strcmp() of two elements of such a list, for qsort() and bsearch(). */
int strings_compare (const void *a, const void *b);

/* Whether a text from a file may be part of a path, or of a command that is
 * started: 1 to 255 letters, digits, '_', '.', '+' and '-',
 * and the first is neither
 * of the last two.
 */
enum { WORD_SIZE = 256 };
bool word_fits (const char *text);

/* Put '_' in the place of each character that keeps 'text' from it. */
void word_make_fit (char *text);

/* " and 3 more", which follows a list of which only the first elements are shown; "" if none is
 * left.  Returns 'buf'.
 */
enum { AND_MORE_SIZE = 32 };
const char *and_more (char buf[AND_MORE_SIZE], long left);

bool text_ends_with (const char *text, const char *end);

/* A text as one word for a shell, in quotes if it needs them; the caller frees
 * it.
 */
char *shell_word (const char *text);
