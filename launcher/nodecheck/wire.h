/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the ranks and the collector. */
#pragma once

#include <jansson.h>
#include <stddef.h>

/* After the handshake, with {"rank", "size", "layout": {...}} as its body,
 * which starts the clock, a JSON object a line:
 *
 * rank:      {"facts": {...}, "findings": [...]}
 * collector: {"go": {"next": {"host", "address", "port"}}}
 * rank:      {"findings": [...], "rates": {...}}
 * collector: {"status": 0, 75 or 79}
 */

enum { GATHER_LINE = 256 << 10 }; /* longest line, bytes */

struct gather_line {
    char *text;
    size_t used, capacity;
};

/* Read what there is on a non-blocking descriptor.  Returns an object once its
 * line is complete, which the caller owns; NULL with errno EAGAIN if it is
 * not; NULL with another errno if nothing more can come.
 */
json_t *gather_read (int fd, struct gather_line *line);
void gather_line_free (struct gather_line *line);

/* Write an object and a line's end, all of it before 'deadline' (monotonic()).
 * Returns 0, or -1 with errno.
 */
int gather_write (int fd, const json_t *object, double deadline);

/* Copy text that another node sent, without control characters, cut to fit. */
void gather_clean (char *buf, size_t size, const char *text);
