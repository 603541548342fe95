/* SPDX-License-Identifier: Apache-2.0 */
/* Keep control characters from files and programs away from the terminal. */
#pragma once

#include <stdbool.h>

/* From now on, print control characters (C0, DEL, C1) other than newline and tab, and bytes that
 * are not UTF-8, as \xNN if standard output or standard error is a terminal.  Pipes and files get
 * the bytes unchanged.
 */
void terminal_guard (void);

/* Also let colours (SGR) pass, up to the end of the line, and treat a carriage return as a newline.
 * Use this for a training program's output, and for tables whose cells contain no control
 * characters.
 */
void terminal_allow_colours (bool allow);

/* Print a control sequence of dl itself to standard output, unescaped. */
void terminal_control (const char *fmt, ...) __attribute__ ((format (printf, 1, 2)));
