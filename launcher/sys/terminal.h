/* SPDX-License-Identifier: Apache-2.0 */
/* What a terminal may be told: no control characters of others. */
#pragma once

#include <stdbool.h>

/* From now on standard output and standard error, each if it is a terminal,
 * get control characters (C0, DEL, C1) and bytes that are no UTF-8 as \xNN,
 * except for newlines and tabs.  A pipe or a file gets all as it is.
 */
void terminal_guard (void);

/* Colours (SGR) pass too, until the end of the line, and a carriage return ends
 * the line: of a training program's output, or of a table, whose cells have no
 * control characters.
 */
void terminal_allow_colours (bool allow);

/* What this program itself tells the terminal on standard output. */
void terminal_control (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
