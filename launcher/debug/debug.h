/* SPDX-License-Identifier: Apache-2.0 */
/* What others may use of debugging: dl debug, its dumps, and what a process is waiting for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "launcher/debug/stacks.h"
#include "launcher/sys/step_processes.h"

struct command_line;
struct rank_progress;

/* ---- dl debug, and dl watch-ranks, which the plugin starts ---- */

/* Options of dl debug. */
struct debug_options {
    bool last;
};

/* Each command returns an exit status from launcher/sys/messages.h. */
int cmd_debug (const struct command_line *line);
int cmd_watch_ranks (const struct command_line *line);

/* ---- Write the stacks of a rank's processes, from outside the processes ---- */

/* Signal a Python process that runs our sitecustomize.py to dump the stacks of all its
 * threads through faulthandler.  This works even while the interpreter is in a C
 * function.  Skips processes that are stopped, wait for a disk or do not handle the
 * signal and, unless 'may_disturb', those whose system call the signal would interrupt.
 * The caller frees the text.  Returns NULL if none arrives within a second.
 */
char *dump_python (pid_t pid, char state, bool may_disturb);

/* Write the stacks of the 'n' processes of one rank in the format of
 * launcher/debug/stacks.h.  Reads native stacks with gdb or eu-stack if one of them is
 * in PATH, for at most 30 seconds each and only until the monotonic time 'until'.
 * Always includes what the kernel reports about the threads.
 */
void dump_rank (FILE *out, const char *host, const struct rank_process *p, size_t n, double until);

/* ---- The directory dl-debug-JOB.STEP of a step that runs with --dl-debug ---- */

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

/* ---- Tell processes that train from those that only start or watch others ---- */

enum process_kind {
    PROCESS_MAIN,       /* the user's program */
    PROCESS_HELPER,     /* a descendant of the user's program, such as a data loader */
    PROCESS_LAUNCHER,   /* a shell, torchrun or the like, which waits for others */
    PROCESS_BACKGROUND, /* its activity does not indicate training progress */
};

/* Classify the 'n' processes of one rank.  If no process qualifies as PROCESS_MAIN, the
 * rank's root process becomes it.  'proc' is the mount point of proc.
 */
void family_kinds (const char *proc, const struct rank_process *p, size_t n,
                   enum process_kind *kinds);

/* ---- When each rank last made progress, observed from outside ---- */

/* Signs of progress in the main program of a rank and in its helpers
 * (launcher/debug/debug.h):
 *     main thread: a read, a write or a page fault
 *     other threads that used at least a tenth of a core: a page fault
 *
 * CPU time is not a sign, because a rank that waits in NCCL keeps a core busy.  Reads
 * and writes of other threads are none either, because some libraries log a heartbeat.
 * The caller reports a main thread whose Python stack has changed.
 */

/* 'proc' is the mount point of proc. */
struct rank_progress *progress_create (const char *proc);
void progress_destroy (struct rank_progress *p);

/* Observe processes, sorted by rank, at the time 'now' in seconds.  If this process
 * asked ranks for something, such as their stacks, at the time 'asked', the activity of
 * ranks that have made no progress since does not count, because the request may have
 * caused it.  'asked' is 0 if it asked no rank and INFINITY if it asked all.
 */
void progress_look (struct rank_progress *p, const struct rank_process *all, size_t n, double now,
                    double asked);

/* Record that a rank has made progress. */
void progress_mark (struct rank_progress *p, long rank, double now);

/* Return the time of the last sign of progress, or 'now' for a rank that was never
 * seen.
 */
double progress_last (const struct rank_progress *p, long rank, double now);
