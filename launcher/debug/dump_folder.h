/* SPDX-License-Identifier: Apache-2.0 */
/* The folder dl-debug-JOB.STEP of a step that runs with --dl-debug. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "launcher/debug/stacks.h"

/* In it are
 *     watch-NODE      while the watcher of that node lives, rewritten by it:
 *                     HOST, and seconds since any rank there made progress
 *     dump-N/         stacks that a watcher or dl debug requested
 *         reason      one line, and one with a word of debug_cause_words
 *         rank-R      stacks of a rank, see launcher/debug/stacks.h
 *         node-NODE   empty: that node's ranks are all there
 *         line        one line: what was found
 *     error.RANK.PID  the exception that ended a Python
 *     nccl.*, flight_RANK, pipe_RANK.pipe    of NCCL and PyTorch
 * A dump is requested by making its folder: of two processes, one succeeds.
 */

enum { DEBUG_LINE = 2048, DEBUG_STALE = 40 };

/* Number of the last dump, 0: none. */
long debug_newest (const char *dir);

/* Why a dump was requested. */
enum debug_cause {
    DEBUG_REQUEST, /* by dl debug; also a dump that has no such word */
    DEBUG_HANG,    /* all ranks of the step hang */
    DEBUG_PART,    /* some of the ranks of a node hang */
    DEBUG_END,     /* the others wait for a rank that has ended */
    DEBUG_CAUSES
};

/* Request this one, the next after those that the caller knows.  Returns -1
 * with errno (EEXIST: another process did).
 */
int debug_request (const char *dir, long dump, enum debug_cause cause, const char *reason);

/* The cause of a dump, and the reason in words: "" if there is none yet. */
enum debug_cause debug_cause (const char *dir, long dump, char *reason, size_t size);

/* Path of a file of a dump; "" is its folder. */
void debug_path (char *path, size_t size, const char *dir, long dump, const char *file);

/* Write a text under a new name, then rename: a file is whole or not there. */
int debug_write (const char *path, const char *text);

/* How many watchers have ended their part of the dump. */
long debug_done (const char *dir, long dump);

/* How many other nodes have watchers, and the shortest time in seconds that
 * the ranks there have made no progress, by the watchers' files.  A watcher
 * whose file is older than DEBUG_STALE seconds has ended.
 */
struct debug_others {
    long n;
    double quiet;
};
struct debug_others debug_others (const char *dir, const char *node);

/* Wait until all watchers have, at most 'seconds'; ends before if
 * 'go_on (arg)' is false.  Returns how many have not.
 */
long debug_wait (const char *dir, long dump, double seconds, bool (*go_on) (void *), void *arg);

/* Stacks of a dump, grouped; free() both lists.  Returns how many. */
size_t debug_read (const char *dir, long dump, struct stack **stacks, size_t **group);

/* Call 'f' for each entry whose name begins with 'prefix'. */
void debug_each (const char *dir, const char *prefix,
                 void (*f) (const char *dir, const char *name, void *arg), void *arg);

/* The last line of a file's last 4 MiB that contains 'word' ("": that is not
 * empty); "" if there is none, or it is no regular file.
 */
void debug_last_line (const char *path, const char *word, char *buf, size_t size);
