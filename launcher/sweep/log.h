/* SPDX-License-Identifier: Apache-2.0 */
/* The decision log: numbered, immutable entries that only ever grow. */
#pragma once

#include "launcher/sweep/event.h"
#include "launcher/sys/publish.h"
#include "runtime/base/error.h"

/* An entry is a file of one JSON object per line, each an event, and a last line with the XXH64 of
 * the bytes before it.  Entries 1 to 256 are in the folder log/000000, the next 256 in log/000001,
 * and so on; beside a full folder there may be log/000000.pack with the same events, which is
 * faster to read.  Only a process that has seen entry N can write entry N+1, so every reader sees
 * the same events in the same order (doc/formats.md).
 */
enum { LOG_BLOCK = 256 };

struct log;

/* Called for each event, in order.  Returning -1 ends the reading. */
typedef int (*log_event_f) (const struct event *event, void *arg, struct slurmdl_error *err);

/* Open the log in the folder 'dir', which is created if absent.  Returns NULL on failure. */
struct log *log_create (const char *dir, struct slurmdl_error *err);
void log_destroy (struct log *log);

/* Read the entries that are new since the last call.  Returns how many, -1
 * on failure: errno EBADMSG means that an entry is damaged.
 */
int log_sync (struct log *log, log_event_f f, void *arg, struct slurmdl_error *err);

/* Write 'n' events as the next entry.  PUBLISH_DONE: they are in the log and count as read, so that
 * the caller applies them.  PUBLISH_LATE: sync, decide on the new state and try again.
 */
enum published log_append (struct log *log, const struct event *events, size_t n,
                           struct slurmdl_error *err);

/* From now on each entry gets its name only after this has ended as well; NULL: no longer. */
void log_put_after (struct log *log, const struct publish_after *after);

/* With 'defers', the name of a new entry is not fsynced until log_settle(), with which the next
 * log_append() begins.
 */
void log_defer (struct log *log, bool defers);
int log_settle (struct log *log, struct slurmdl_error *err);

/* Begin log_settle() in the background. */
void log_begin_to_settle (struct log *log);

/* Before telling a user what was read: fsync the newest entry's name, whoever wrote it. */
void log_confirm (const struct log *log);

/* Whether this process wrote the newest entry that was read; there was no later one then. */
bool log_is_mine (const struct log *log);

/* Number of entries read. */
long log_length (const struct log *log);

/* The text of an entry of 'n' events, ending with a line that holds their checksum.  The caller
 * frees it.
 */
char *journal_entry_text (const struct event *events, size_t n);

/* Cut off that last line; NULL if it is not the checksum of what precedes it. */
char *journal_entry_body (char *text, size_t len);
