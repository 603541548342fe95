/* SPDX-License-Identifier: Apache-2.0 */
/* The directory dl-debug-JOB.STEP of a step that runs with --dl-debug. */
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
 * A process requests a dump by creating its directory, so if two processes request the
 * same dump, only one succeeds.
 */

enum { DEBUG_LINE = 2048, DEBUG_STALE = 40 };

/* Return the number of the last dump, or 0. */
long debug_newest (const char *dir);

/* Why a dump was requested. */
enum debug_cause {
    DEBUG_REQUEST, /* by dl debug; also the default if no cause is recorded */
    DEBUG_HANG,    /* all ranks of the step hang */
    DEBUG_PART,    /* some of the ranks of a node hang */
    DEBUG_END,     /* other ranks wait for one that has ended */
    DEBUG_CAUSES
};

/* Request the given dump, which must follow the last one known to the caller.  Returns
 * -1 with errno; EEXIST if another process requested it first.
 */
int debug_request (const char *dir, long dump, enum debug_cause cause, const char *reason);

/* Return the cause of a dump and store its reason, "" if it is not written yet. */
enum debug_cause debug_cause (const char *dir, long dump, char *reason, size_t size);

/* Build the path of a file of a dump; for "", that of the dump's directory. */
void debug_path (char *path, size_t size, const char *dir, long dump, const char *file);

/* Write a file atomically, through a temporary name and rename(). */
int debug_write (const char *path, const char *text);

/* Return how many watchers have finished their part of the dump. */
long debug_done (const char *dir, long dump);

/* Count the other nodes with a live watcher.  'quiet' is the shortest time, in
 * seconds, since any of their ranks made progress.  A watcher whose file is older than
 * DEBUG_STALE seconds is considered dead.
 */
struct debug_others {
    long n;
    double quiet;
};
struct debug_others debug_others (const char *dir, const char *node);

/* Wait until all watchers have finished, but at most 'seconds' and only while
 * 'go_on (arg)' is true.  Returns how many have not finished.
 */
long debug_wait (const char *dir, long dump, double seconds, bool (*go_on) (void *), void *arg);

/* Read and group the stacks of a dump.  The caller frees both lists.  Returns how many. */
size_t debug_read (const char *dir, long dump, struct stack **stacks, size_t **group);

/* Call 'f' for each entry whose name begins with 'prefix'. */
void debug_each (const char *dir, const char *prefix,
                 void (*f) (const char *dir, const char *name, void *arg), void *arg);

/* Find the last line that contains 'word' in the last 4 MiB of a file.  If 'word' is
 * "", find the last line that is not empty.  Stores "" if there is none or the file is
 * not a regular file.
 */
void debug_last_line (const char *path, const char *word, char *buf, size_t size);
