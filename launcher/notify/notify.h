/* SPDX-License-Identifier: Apache-2.0 */
/* Tell somebody of the end of an experiment, of failures, of lines in a log. */
#ifndef LAUNCHER_NOTIFY_NOTIFY_H
#define LAUNCHER_NOTIFY_NOTIFY_H

#include "launcher/sweep/sweep.h"

/* Each is told once, by whichever process is the first to put a file into
 * notified/ of the experiment.  What fails is said on standard error, and is no
 * failure of the experiment.
 */

/* The experiment has ended by itself, with the state it has now. */
void notify_end (const struct sweep *s);

/* It was paused, as all attempts fail in the same way. */
void notify_fault (const struct sweep *s);

/* An attempt has ended: tell of the first trial that was given up, and of the
 * first line that each of notify.pattern matches.
 */
void notify_attempt (const struct sweep *s, long trial, long attempt);

#endif
