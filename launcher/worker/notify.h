/* SPDX-License-Identifier: Apache-2.0 */
/* Notify the user that an experiment ended, a trial failed or a log line matched. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Each notice is sent once, by the first process to create its marker in the experiment's folder
 * notified/.  If a notice cannot be sent, dl complains on standard error and the experiment
 * continues.
 */

/* The experiment has ended in its present state, or was stopped or killed. */
void notify_end (const struct sweep *s);

/* The experiment has been paused because all attempts fail in the same way. */
void notify_fault (const struct sweep *s);

/* An attempt has ended: report the first trial that was given up, and the first line that matches
 * each pattern of notify.pattern.
 */
void notify_attempt (const struct sweep *s, long trial, long attempt);

/* The search of a running attempt's log.  Initialise it with zeros. */
struct notify_watch {
    pid_t child; /* the process that searches the log; 0: none */
    double begun, next;
};

/* Search the log every few seconds in a child process.  Call this often.  At the end, call
 * notify_unwatch() until it returns false, which happens soon.
 */
void notify_watch (const struct sweep *s, long trial, long attempt, struct notify_watch *w);
bool notify_unwatch (struct notify_watch *w);

/* Check notify.webhook.  Returns 0 if it is unset or names a usable URL, else -1 with 'err'. */
int webhook_check (const struct experiment *e, struct slurmdl_error *err);
