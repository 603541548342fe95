/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that are the same, counted while no trial has given a result. */
#pragma once

#include "launcher/sweep/sweep.h"

/* So many of them are a fault that all trials share. */
enum { FAULT_LIMIT = 3, FAULT_KEY = 192 };

/* What two failures have in common: 'why' without its numbers (but for exit
 * statuses and signals) and paths.
 */
void fault_key (char key[FAULT_KEY], const char *why);

/* Count a failed attempt, as an event says it. */
int fault_note (struct sweep *s, const struct event *e, struct slurmdl_error *err);

/* The failures so far that were the same as 'why'; NULL: none. */
const struct fault *fault_like (const struct sweep *s, const char *why);

/* The failure that was the same most often; NULL: none, or there is a result.
 */
const struct fault *fault_most (const struct sweep *s);

/* The fault that all trials share; NULL: none, or there is a result. */
const struct fault *fault_shared (const struct sweep *s);

/* Somebody has mended it, or so it is hoped. */
void faults_forget (struct sweep *s);

/* The experiment is paused because of a fault. */
bool sweep_is_faulty (const struct sweep *s);
