/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the text of an experiment file. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

/* Parse the file 'path', or a text, also one that was read from 'path'.
 * Integers may have 64 bits without an L,
 * and what has no end is refused.
 *
 * With 'includes' a line @include "FILE" of a file stands for that file,
 * relative to the folder of the one that names it; *includes becomes how many
 * there were.  Else, and in a text, @include is refused.
 *
 * syntax_read() and syntax_read_text() return -1 with errno EINVAL (see 'p'),
 * ENOENT, .... syntax_parse() returns what is wrong in 'line', for the caller
 * to free, or NULL.
 */
int syntax_read (config_t *cf, const char *path, int *includes, struct problems *p);
int syntax_read_text (config_t *cf, const char *path, const char *text, size_t size,
                      struct problems *p);
char *syntax_parse (config_t *cf, const char *text, int *line);

/* ---- what a syntax error may be ---- */

/* The mistake of 'text' at 'line', which becomes that of the mistake.  Returns
 * a text that the caller frees, NULL if memory is short.
 */
char *syntax_hint (const char *text, int *line);

/* Make of a YAML file the settings that libconfig would make of the same keys,
 * with their lines.  Mappings are groups, sequences are lists; plain scalars
 * are integers, numbers, true and false, else strings.
 *
 * Returns -1 with errno EINVAL (see 'p'), ENOENT, ....
 */
int yaml_read (config_t *cf, const char *path, struct problems *p);
