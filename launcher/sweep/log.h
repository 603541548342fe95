/* SPDX-License-Identifier: Apache-2.0 */
/* The decision log: numbered, immutable entries that only ever grow. */
#pragma once

#include "launcher/sweep/event.h"
#include "launcher/sys/publish.h"
#include "runtime/base/error.h"

/* An entry is a file: a JSON object a line, each one event, and a last line
 * with the XXH64 of the bytes before it.  Entries 1 to 256 are in the folder
 * log/000000, the next 256 in log/000001, and so on; beside a full folder may
 * stand log/000000.pack with the same events for the hasty.  Entry N+1 can
 * only be put by somebody who has seen N, so every reader sees the same
 * events in the same order (doc/formats.md).
 */
enum { LOG_BLOCK = 256 };

struct log;

/* Called for each event, in order.  Returning -1 ends the reading. */
typedef int (*log_event_f) (const struct event *event, void *arg, struct slurmdl_error *err);

/* Open the log in folder 'dir' (made if absent).  Returns NULL on failure. */
struct log *log_create (const char *dir, struct slurmdl_error *err);
void log_destroy (struct log *log);

/* Read the entries that are new since the last call.  Returns how many, -1
 * on failure: errno EBADMSG means that an entry is damaged.
 */
int log_sync (struct log *log, log_event_f f, void *arg, struct slurmdl_error *err);

/* Put 'n' events as the next entry.  Returns 0 if they are in the log (and
 * read: the caller applies them), 1 if another process was faster: sync,
 * decide on the new state and try again; -1 on failure.
 */
int log_append (struct log *log, const struct event *events, size_t n, struct slurmdl_error *err);

/* The next entry that is put gets its name when this has ended, too; NULL: no
 * more.
 */
void log_put_after (struct log *log, const struct publish_after *after);

/* From now on the name of an entry that was put may be lost with the machine's
 * power until log_settle(), which the next log_append() begins with.
 */
void log_defer (struct log *log, bool defers);
int log_settle (struct log *log, struct slurmdl_error *err);

/* Begin with log_settle(), beside what the caller does next. */
void log_begin_to_settle (struct log *log);

/* Before somebody is told of what was read: have the newest entry's name on
 * stable storage, whoever put it.
 */
void log_confirm (const struct log *log);

/* Whether the newest entry that was read is one that this process put: there
 * was no later one then.
 */
bool log_is_mine (const struct log *log);

/* Number of entries that were read. */
long log_length (const struct log *log);

/* The text of an entry of 'n' events, ending with a line that holds their checksum.  The caller
 * frees it.
 */
char *journal_entry_text (const struct event *events, size_t n);

/* Cut off that last line; NULL if it is not the checksum of what precedes it. */
char *journal_entry_body (char *text, size_t len);
