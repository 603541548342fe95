/* SPDX-License-Identifier: Apache-2.0 */
/* Notify the user: an experiment ended, trials failed, a log line matched. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Each notice is sent once, by the process that is first to create its marker in the experiment's
 * notified/.  A notice that cannot be sent is reported on standard error; the experiment goes on.
 */

/* The experiment has ended, with its present state, or was stopped or killed. */
void notify_end (const struct sweep *s);

/* The experiment was paused because all attempts fail in the same way. */
void notify_fault (const struct sweep *s);

/* An attempt has ended: report the first trial that was given up, and the first line that matches
 * each pattern of notify.pattern.
 */
void notify_attempt (const struct sweep *s, long trial, long attempt);

/* The search of a running attempt's log; all zero at first. */
struct notify_watch {
    pid_t child; /* searches the log; 0: none does */
    double begun, next;
};

/* Search the log every few seconds, in a child process; call this often.  Afterwards call
 * notify_unwatch() until it returns false, which it does soon.
 */
void notify_watch (const struct sweep *s, long trial, long attempt, struct notify_watch *w);
bool notify_unwatch (struct notify_watch *w);

/* Returns 0 if notify.webhook is not set or names a usable URL, else -1 with 'err'. */
int webhook_check (const struct experiment *e, struct slurmdl_error *err);
