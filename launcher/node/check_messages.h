/* SPDX-License-Identifier: Apache-2.0 */
/* The messages between the ranks of a step and their collector, and those of a
 * probe.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "runtime/comm/net/stream.h"

/* After the handshake, with {"rank", "size", "layout": {...}} as its body,
 * which starts the clock, a JSON object in each message:
 *
 * rank:      {"facts": {...}, "findings": [...]}
 * collector: {"go": {"next": {"host", "address", "port"}}}
 * rank:      {"findings": [...], "rates": {...}}
 * collector: {"status": 0, 75 or 79}
 */

enum { GATHER_LINE = 256 << 10 }; /* longest line or message, bytes */

/* The next message of a non-blocking socket that has come, which the caller
 * owns; NULL with errno EAGAIN: none yet; another errno: nothing more can come.
 */
json_t *gather_receive (struct net_stream *w);

/* All of a message before 'deadline' (monotonic()): 0, or -1 with errno. */
int gather_send (struct net_stream *w, const json_t *object, double deadline);

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

/* Copy text that another node sent, without control characters, cut to fit. */
void gather_clean (char *buf, size_t size, const char *text);
