/* SPDX-License-Identifier: Apache-2.0 */
/* Parse the text of an experiment file. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

/* Parse the file 'path', a text that was read from 'path', or any text.  64-bit integers need no
 * suffix L.  Folders and endless files such as /dev/zero are rejected.
 *
 * If 'includes' is not NULL, a line @include "FILE" includes that file, relative to the folder of
 * the file with the line, and '*includes' becomes the number of such lines.  Otherwise, and in a
 * text, @include is an error.
 *
 * syntax_read() and syntax_read_text() return -1 with errno EINVAL (see 'p'), ENOENT, etc.
 * syntax_parse() returns NULL, or a message for the caller to free; '*line' is then the line of the
 * error.
 */
int syntax_read (config_t *cf, const char *path, int *includes, struct problems *p);
int syntax_read_text (config_t *cf, const char *path, const char *text, size_t size,
                      struct problems *p);
char *syntax_parse (config_t *cf, const char *text, int *line);

/* ---- explaining syntax errors ---- */

/* Guess the mistake behind a syntax error of 'text' at '*line', and set '*line' to the line of the
 * mistake.  Returns a message that the caller frees.
 */
char *syntax_hint (const char *text, int *line);

/* Read a YAML file into the settings that libconfig would create for the same keys, with their
 * lines.  Mappings become groups and sequences become lists.  Plain scalars become integers,
 * floating-point numbers, booleans or strings.
 *
 * Returns -1 with errno EINVAL (see 'p'), ENOENT, etc.
 */
int yaml_read (config_t *cf, const char *path, struct problems *p);
