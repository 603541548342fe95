/* SPDX-License-Identifier: Apache-2.0 */
/* NULL-ended lists of texts. */
#ifndef LAUNCHER_SYS_STRINGS_H
#define LAUNCHER_SYS_STRINGS_H

#include <stddef.h>

/* Add the first 'len' bytes of a text to a NULL-ended list (NULL: none yet).
 * Returns -1 if out of memory.
 */
int strings_add (char ***list, const char *text, size_t len);

/* Free a NULL-ended list and its strings. */
void strings_free (char **list);

#endif
