/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of .dlignore and of the group "code". */
#pragma once

#include <stdbool.h>

/* Whether a pattern of a NULL-ended list (NULL: empty) matches 'path', which is relative to the
 * frozen folder; 'is_folder' tells whether it is a folder.  NAME matches in every folder, DIR/NAME
 * only from the frozen folder on, and NAME/ only folders.  * and ? do not match a slash; ** does.
 */
bool pattern_list_has (char *const *list, const char *path, bool is_folder);

/* Append the lines of a .dlignore to a NULL-ended list, except empty ones and those that begin with
 * '#'.
 */
void pattern_list_read (char ***list, const char *text);
