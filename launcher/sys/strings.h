/* SPDX-License-Identifier: Apache-2.0 */
/* NULL-terminated lists of strings, and checks that a string is safe as a name or a word. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Append to a NULL-terminated list (NULL: create one) a copy of a string, of its first 'len' bytes,
 * of formatted text, or of each string in another list (NULL: an empty one).
 */
void strings_add (char ***list, const char *text);
void strings_add_part (char ***list, const char *text, size_t len);
void strings_addf (char ***list, const char *format, ...) __attribute__ ((format (printf, 2, 3)));
void strings_add_all (char ***list, char *const *more);

/* Whether a list contains a string.  The list may be NULL. */
bool strings_contain (const char *const *list, const char *text);

/* Free a list and its strings. */
void strings_free (char **list);

/* Compare two elements of a list, for qsort() and bsearch(). */
int strings_compare (const void *a, const void *b);

/* Whether a string from a file is safe as a part of a path or a command: 1 to 255 letters, digits,
 * '_', '.', '+' and '-', of which the first is neither '+' nor '-'.
 */
enum { WORD_SIZE = 256 };
bool word_fits (const char *text);

/* Replace each character that word_fits() rejects with '_'. */
void word_make_fit (char *text);

/* Write " and 3 more" to follow a truncated list with 'left' elements left, or "" if 'left' is 0.
 * Returns 'buf'.
 */
enum { AND_MORE_SIZE = 32 };
const char *and_more (char buf[AND_MORE_SIZE], long left);

bool text_ends_with (const char *text, const char *end);

/* Write a string so that a shell reads it as one word, with quotes if necessary. */
void shell_put (FILE *f, const char *text);

/* The same as a string, which the caller frees. */
char *shell_word (const char *text);
