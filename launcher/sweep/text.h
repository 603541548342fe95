/* SPDX-License-Identifier: Apache-2.0 */
/* Durations, times and trials as text. */
#pragma once

#include <stdio.h>

#include "launcher/sweep/sweep.h"

struct hparam;

/* A hyperparameter's value as text; NULL: the trial has none.  The caller frees
 * it.
 */
char *cell_text (const struct sweep *s, const struct sweep_trial *t, const struct hparam *h);

/* "name=value name=value" of a trial; the caller frees it. */
char *trial_text (const struct sweep *s, const struct sweep_trial *t);
/* The start of the last 'lines' lines of a text of 'n' bytes, whose empty lines
 * at its end are cut off.
 */
char *text_last_lines (char *text, size_t n, long lines);

/* "2m13s" */
void duration_text (char *buf, size_t size, double seconds);
/* "2026-11-21 10:55" */
void time_text (char *buf, size_t size, double when);

/* Print the conditions that are or were true, a line each. */
void conditions_print (const struct conditions *c, FILE *f);
