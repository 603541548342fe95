/* SPDX-License-Identifier: Apache-2.0 */
/* Detect files that several trials write in a folder that they share. */
#pragma once

#include "launcher/sweep/attempt.h"

/* An attempt has just ended: record in its folder which files of the shared folder have changed
 * since it began.
 */
void shared_files_note (const struct trial_attempt *a);

/* Call 'f' for each file recorded in an attempt's folder, with its path below the shared folder,
 * until it returns non-zero.
 */
int shared_files_each (const char *attempt, int (*f) (const char *path, long long size, void *arg),
                       void *arg);

struct shared_file {
    char path[4096]; /* below the shared folder */
    long trials[2];
    long others; /* number of other files that two trials wrote */
};

/* Find a file that two of the first trials wrote, judging by the times at which it changed.  Either
 * no single trial ran at all of these times, or its name does not belong to one trial and it
 * changed while two trials ran, and again after the first of them ended.  Returns whether there is
 * such a file.
 */
bool shared_files_find (const struct sweep *s, struct shared_file *found);
