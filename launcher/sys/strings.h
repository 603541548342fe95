/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: NULL-ended lists of them, and which are safe as names and words. */
#ifndef LAUNCHER_SYS_STRINGS_H
#define LAUNCHER_SYS_STRINGS_H

#include <stdbool.h>
#include <stddef.h>

/* Add the first 'len' bytes of a text to a NULL-ended list (NULL: none yet).
 * Returns -1 if out of memory.
 */
int strings_add (char ***list, const char *text, size_t len);

/* Whether a NULL-ended list (NULL: an empty one) has a text. */
bool strings_contain (const char *const *list, const char *text);

/* Free a NULL-ended list and its strings. */
void strings_free (char **list);

/* Whether a text from a file may be part of a path, or of a command that is
 * started: 1 to 255 letters, digits, '_', '.', '+' and '-',
 * and the first is neither
 * of the last two.
 */
enum { WORD_SIZE = 256 };
bool word_fits (const char *text);

/* Put '_' in the place of each character that keeps 'text' from it. */
void word_make_fit (char *text);

/* A text as one word for a shell, in quotes if it needs them; the caller frees
 * it.  NULL if out of memory.
 */
char *shell_word (const char *text);

#endif
