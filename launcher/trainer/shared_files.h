/* SPDX-License-Identifier: Apache-2.0 */
/* Files that several trials write in the folder that they share. */
#pragma once

#include "launcher/sweep/attempt.h"

/* Note in the attempt's folder which files of the folder in which all trials
 * run have changed since it began.  It has just ended.
 */
void shared_files_note (const struct trial_attempt *a);

/* Call 'f' for each file that was noted in an attempt's folder, with its path
 * below the folder that is shared, until it returns non-zero.
 */
int shared_files_each (const char *attempt, int (*f) (const char *path, long long size, void *arg),
                       void *arg);

struct shared_file {
    char path[4096]; /* below the folder that is shared */
    long trials[2];
    long others; /* other files that two trials wrote */
};

/* Find a file that two of the first trials wrote, by the times at which it
 * changed: either no trial ran at all of these times, or its name has nothing
 * of one trial and it changed while two ran, and again after the first of them.
 * Returns whether there is one.
 */
bool shared_files_find (const struct sweep *s, struct shared_file *found);
