/* SPDX-License-Identifier: Apache-2.0 */
/* What dl prints of an experiment beside its trials: state, faults, failures, workers. */
#pragma once

#include "launcher/sweep/sweep.h"

/* The fault that paused the experiment, the end of the log that shows it, and
 * what to do; nothing if there is none.
 */
void print_fault (const struct sweep *s);

/* Limits of time that were reached; nothing if none was. */
void print_limits (const struct sweep *s);

/* A file that two trials wrote in the folder that all share, and what to do;
 * nothing if none is known.
 */
void print_shared_files (const struct sweep *s);

/* How many trials have failed, and of what most of them; trials whose program
 * ended early, or did not go on from its file; nothing if none.
 */
void print_failed (const struct sweep *s);

/* "paused (fault)", or the name of the state. */
const char *state_text (const struct sweep *s);

/* Write results.h5 of a sweep that has ended if whoever was to do that died,
 * and say what it lacks.
 */
void print_results (const struct sweep *s);

/* What the worker that wrote last has written last. */
void print_last_words (const struct sweep *s);

/* What is known of the experiment beside its trials. */
void print_overview (const struct sweep *s);

/* Seconds since a worker of the sweep, which should have some, gave a sign of
 * life; NaN: they are at work, or none is wanted.
 */
double sweep_idle (const struct sweep *s);
