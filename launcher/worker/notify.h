/* SPDX-License-Identifier: Apache-2.0 */
/* Tell somebody of the end of an experiment, of failures, of lines in a log. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Each is told once, by whichever process is the first to put a file into
 * notified/ of the experiment.  What fails is said on standard error, and is no
 * failure of the experiment.
 */

/* The experiment has ended, with the state it has now, or was stopped or
 * killed.
 */
void notify_end (const struct sweep *s);

/* It was paused, as all attempts fail in the same way. */
void notify_fault (const struct sweep *s);

/* An attempt has ended: tell of the first trial that was given up, and of the
 * first line that each of notify.pattern matches.
 */
void notify_attempt (const struct sweep *s, long trial, long attempt);

/* The log of an attempt at work, all zero at first. */
struct notify_watch {
    pid_t child; /* searches it, 0: none does */
    double begun, next;
};

/* Search it every few seconds, in a process of its own: to be called often.
 * Then call notify_unwatch() until it returns false, which it does soon.
 */
void notify_watch (const struct sweep *s, long trial, long attempt, struct notify_watch *w);
bool notify_unwatch (struct notify_watch *w);
