/* SPDX-License-Identifier: Apache-2.0 */
/* Print the state, faults, failures and workers of an experiment. */
#pragma once

#include "launcher/sweep/sweep.h"

/* If a fault paused the experiment, print the fault, the end of the log that shows
 * it, and what to do.
 */
void print_fault (const struct sweep *s);

/* Print the time limits that were reached, if any. */
void print_limits (const struct sweep *s);

/* If two trials are known to have written the same file in their shared working
 * directory, print its name and what to do.
 */
void print_shared_files (const struct sweep *s);

/* Print how many trials failed and the most frequent cause, and report trials whose
 * program ended early or did not resume from its checkpoint.
 */
void print_failed (const struct sweep *s);

/* Return the name of the state, such as "paused (fault)". */
const char *state_text (const struct sweep *s);

/* Write results.h5 of a finished sweep if the worker responsible for it died, and
 * print what the file lacks.
 */
void print_results (const struct sweep *s);

/* Print everything about the experiment except its trials. */
void print_overview (const struct sweep *s);

/* Return the seconds since the last heartbeat if the sweep should have workers but
 * none is active, else NaN.
 */
double sweep_idle (const struct sweep *s);
