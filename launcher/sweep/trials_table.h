/* SPDX-License-Identifier: Apache-2.0 */
/* Print the table of trials, the best trial, and excluded nodes. */
#pragma once

#include "launcher/sweep/columns.h"
#include "launcher/sweep/sweep.h"

/* Print a table of 'n' trials in the order of the list.  If the terminal is too narrow, leave out
 * whole columns, and print their names below.
 */
void print_trials (const struct sweep *s, const long *trials, long n);

/* Print such a table of the best trials, at most 'max'. */
void print_best_trials (const struct sweep *s, long max);

/* Print a line with the reason for each node that is excluded. */
void print_excluded (const struct sweep *s);

/* Print which way the metrics are better: "metric: val_acc, larger is better". */
void print_direction (const struct sweep *s);

/* Print the best result, if any: "best loss 0.1: trial 3 at length 9", with its checkpoint.  Also
 * name the metrics that were never a finite number.
 */
void print_best (const struct sweep *s);

/* Write the header of a CSV file, and the line of a trial, quoted as in RFC 4180.  'safe' keeps
 * spreadsheets from reading a text as a formula.
 */
void csv_put_names (FILE *f, const struct columns *c, bool safe);
void csv_put_trial (FILE *f, const struct sweep *s, const struct columns *c, long trial, bool safe);
