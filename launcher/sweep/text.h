/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, times and trials as text. */
#pragma once

#include <stdio.h>

#include "launcher/sweep/sweep.h"

struct hparam;

/* A hyperparameter's value as text, with at most 4 significant digits; NULL: the trial has none.
 * The caller frees it.
 */
char *cell_text (const struct sweep *s, const struct sweep_trial *t, const struct hparam *h);

/* A trial's hyperparameters as "name=value name=value".  The caller frees the text. */
char *trial_text (const struct sweep *s, const struct sweep_trial *t);
/* Find the start of the last 'lines' lines of a text of 'n' bytes, after removing empty lines from
 * its end.
 */
char *text_last_lines (char *text, size_t n, long lines);

/* Write a duration, such as "2m13s". */
void duration_text (char *buf, size_t size, double seconds);
/* Write a local time, such as "2026-11-21 10:55"; "" for NaN.  'when' is in s since the epoch. */
void time_text (char *buf, size_t size, double when);

/* Print the conditions that are or were true, one per line. */
void conditions_print (const struct conditions *c, FILE *f);
