/* SPDX-License-Identifier: Apache-2.0 */
/* The decision log: an append-only sequence of numbered, immutable entries. */
#pragma once

#include "launcher/sweep/event.h"
#include "launcher/sys/publish_file.h"
#include "runtime/base/error.h"

/* An entry is a file with one event per line, a JSON object each, and a last line with the XXH64 of
 * the bytes before it.  Entries 1 to 256 are in the folder log/000000, the next 256 in log/000001,
 * and so on.  Next to a full folder, log/000000.pack may hold the same events in a form that is
 * faster to read.  Only a process that has read entry N can write entry N+1, so all readers see the
 * same events in the same order (doc/formats.md).
 */
enum { LOG_BLOCK = 256 };

struct log;

/* Receives each event, in order.  Return -1 to stop reading. */
typedef int (*log_event_f) (const struct event *event, void *arg, struct slurmdl_error *err);

/* Open the log in the folder 'dir', and create the folder if absent.  Returns NULL with 'err'. */
struct log *log_create (const char *dir, struct slurmdl_error *err);
void log_destroy (struct log *log);

/* Read the entries that are new since the last call, and return how many there were.  Returns -1
 * with 'err' and errno; EBADMSG means that an entry is damaged.
 */
int log_sync (struct log *log, log_event_f f, void *arg, struct slurmdl_error *err);

/* Write 'n' events as the next entry.  After PUBLISH_DONE the entry counts as read: log_sync() will
 * not report it, so the caller applies the events itself.  After PUBLISH_LATE, sync, decide again
 * on the new state, and retry.
 */
enum published log_append (struct log *log, const struct event *events, size_t n,
                           struct slurmdl_error *err);

/* From now on, give an entry its name only after 'after' has ended, too; NULL: do not wait. */
void log_put_after (struct log *log, const struct publish_after *after);

/* With 'defers', do not fsync the name of a new entry until log_fsync(), which the next
 * log_append() calls first.
 */
void log_defer (struct log *log, bool defers);
int log_fsync (struct log *log, struct slurmdl_error *err);

/* Start log_fsync() in the background. */
void log_begin_fsync (struct log *log);

/* Fsync the newest entry's name, whoever wrote it.  Call this before showing a user what was read.
 */
void log_confirm (const struct log *log);

/* Whether this process wrote the newest entry that was read, so that it has missed no other. */
bool log_is_mine (const struct log *log);

/* The number of entries read so far. */
long log_length (const struct log *log);

/* The text of an entry with 'n' events, including the last line with the checksum.  The caller
 * frees it.
 */
char *journal_entry_text (const struct event *events, size_t n);

/* Cut off the last line of such a text, and return the text; NULL if the checksum is wrong. */
char *journal_entry_body (char *text, size_t len);
