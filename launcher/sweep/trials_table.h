/* SPDX-License-Identifier: Apache-2.0 */
/* The table of trials, the best of them, and the machines that are excluded. */
#pragma once

#include "launcher/sweep/columns.h"
#include "launcher/sweep/sweep.h"

/* Print a table of 'n' trials in the order of the list.  Where the window has
 * no room for a column it is left out as a whole, and named.
 */
int print_trials (const struct sweep *s, const long *trials, long n);

/* The same of the best ones, 'max' at most. */
void print_best_trials (const struct sweep *s, long max);

/* A line for each machine that is excluded, with the reason. */
void print_excluded (const struct sweep *s);

/* "metric: val_acc, larger is better". */
void print_direction (const struct sweep *s);

/* "best loss 0.1: trial 3 at length 9", nothing if there is no result; and
 * which metrics never had a number.
 */
void print_best (const struct sweep *s);

/* As CSV: the line of the names, and that of a trial, as RFC 4180 has them.  'safe' keeps
 * spreadsheets from taking a text for a formula.
 */
void csv_put_names (FILE *f, const struct columns *c, bool safe);
void csv_put_trial (FILE *f, const struct sweep *s, const struct columns *c, long trial, bool safe);
