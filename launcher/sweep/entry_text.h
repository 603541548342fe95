/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a log entry: its events, and the checksum of them. */
#pragma once

#include "launcher/sweep/event.h"

/* The text of an entry of 'n' events, its last line the checksum; freed by the
 * caller.  NULL if out of memory.
 */
char *journal_entry_text (const struct event *events, size_t n);

/* The same text without its last line, which is cut off; NULL if that is not
 * the checksum of what is before it.
 */
char *journal_entry_body (char *text, size_t len);
