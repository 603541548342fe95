/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trials, the best of them, and the machines that are excluded. */
#ifndef LAUNCHER_FORMAT_TRIALS_TABLE_H
#define LAUNCHER_FORMAT_TRIALS_TABLE_H

#include "launcher/sweep/sweep.h"

/* Print the table of trials, the best first: 'max' rows, 0: all. */
int print_trials (const struct sweep *s, long max, bool json);

/* A line for each machine that is excluded, with the reason. */
void print_excluded (const struct sweep *s);

/* "best loss 0.1: trial 3 at length 9", nothing if there is no result; and
 * which metrics never had a number.
 */
void print_best (const struct sweep *s);

#endif
