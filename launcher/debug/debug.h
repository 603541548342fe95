/* SPDX-License-Identifier: Apache-2.0 */
/* The folder dl-debug-JOB.STEP of a step that runs with --dl-debug. */
#ifndef LAUNCHER_DEBUG_DEBUG_H
#define LAUNCHER_DEBUG_DEBUG_H

#include <stdbool.h>
#include <stddef.h>

#include "launcher/debug/stacks.h"
#include "launcher/sys/settings.h"

/* In it are
 *     watch-NODE      while the watcher of that node lives, written anew by it:
 *                     HOST, and seconds since any rank there made progress
 *     dump-N/         stacks that were asked for, by a watcher or by dl debug
 *         reason      one line
 *         rank-R      stacks of a rank, see launcher/stacks.h
 *         node-NODE   empty: that node's ranks are all there
 *         line        one line: what was found
 *     error.RANK.PID  the exception that ended a Python
 *     nccl.*, flight_RANK, pipe_RANK.pipe    of NCCL and PyTorch
 * A dump is asked for by making its folder: of two that want one, one does.
 */

enum { DEBUG_LINE = 2048, DEBUG_STALE = 40 };

/* Number of the last dump, 0: none. */
long debug_newest (const char *dir);

/* Ask for this one, the next after those that the caller knows, with the
 * reason.  Returns -1 with errno (EEXIST: somebody else did).
 */
int debug_ask (const char *dir, long dump, const char *reason);

/* Path of a file of a dump; "" is its folder. */
void debug_path (
    char *path, size_t size, const char *dir, long dump, const char *file);

/* Write a text under a new name, then rename: a file is whole or not there. */
int debug_write (const char *path, const char *text);

/* The first line of a file, "" if there is none. */
void debug_line (const char *path, char *buf, size_t size);

/* Watchers that live, counted at most 'DEBUG_STALE' seconds after a touch
 * and before the dump's folder was made; and how many have ended the dump.
 */
long debug_watchers (const char *dir, long dump);
long debug_done (const char *dir, long dump);

/* How many other nodes have watchers, and the shortest time in seconds that
 * the ranks there have made no progress, as they wrote last.  A watcher that
 * wrote nothing for DEBUG_STALE seconds has gone.
 */
struct debug_others {
    long n;
    double quiet;
};
struct debug_others debug_others (const char *dir, const char *node);

/* Wait until all watchers have, at most 'seconds'; ends before if
 * 'go_on (arg)' is false.  Returns how many have not.
 */
long debug_wait (const char *dir,
                 long dump,
                 double seconds,
                 bool (*go_on) (void *),
                 void *arg);

/* Stacks of a dump, grouped; free() both lists.  Returns how many. */
size_t
debug_read (const char *dir, long dump, struct stack **stacks, size_t **group);

/* Call 'f' for each entry whose name begins with 'prefix'. */
void debug_each (const char *dir,
                 const char *prefix,
                 void (*f) (const char *dir, const char *name, void *arg),
                 void *arg);

/* The last line of a file that contains 'word' ("": that is not empty); ""
 * if there is none.
 */
void debug_last_line (const char *path,
                      const char *word,
                      char *buf,
                      size_t size);

/* The commands: an exit status of launcher/sys/say.h. */
int cmd_debug (const struct settings *st);
int cmd_watch (const struct settings *st);

#endif
