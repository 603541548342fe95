/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of .dlignore and of the group "code". */
#pragma once

#include <stdbool.h>

/* Whether one of a NULL-ended list (NULL: none) matches a path below the frozen
 * folder, or with 'is_folder' a folder: NAME matches in each folder, DIR/NAME
 * from the frozen folder on, NAME/ only folders; * and ? do not match a slash,
 * and ** does.
 */
bool pattern_list_has (char *const *list, const char *path, bool is_folder);

/* Add the lines of a .dlignore to a list; '#' begins a comment. */
void pattern_list_read (char ***list, const char *text);
