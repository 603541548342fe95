/* SPDX-License-Identifier: Apache-2.0 */
/* Replay the decision log: apply events to the state of a sweep. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Apply one event to the state; a log_event_f whose argument is a struct sweep. */
int sweep_apply (const struct event *event, void *sweep, struct slurmdl_error *err);

/* Whether a result would count if it were published now. */
bool sweep_takes_result (struct sweep *s, const struct event *e);

/* Whether the worker at 'slot' should leave. */
bool sweep_retires (const struct sweep *s, const char *slot);

/* ---- failures in a row on one node ---- */

/* Whether a node seems to be at fault, now that an attempt of this trial has failed there: attempts
 * of several trials failed there in a row, while at least as many results were accepted from
 * elsewhere.  Never accuses the majority of the nodes.
 */
bool host_spoils (const struct sweep *s, const char *name, long trial);

/* ---- equal failures, counted until a trial gives a result ---- */

/* FAULT_LIMIT equal failures count as a fault that all trials share. */
enum { FAULT_LIMIT = 3, FAULT_KEY = 192 };

/* Reduce 'why', of the class 'cause', to what equal failures have in common: drop paths, and all
 * numbers but exit statuses and signals.  NULL is "".
 */
void fault_key (char key[FAULT_KEY], enum condition_reason cause, const char *why);

/* Count the failed attempt of an event. */
void fault_note (struct sweep *s, const struct event *e);

/* The earlier failures that are equal to this one; NULL: none, or a trial has a result. */
const struct fault *fault_like (const struct sweep *s, enum condition_reason cause,
                                const char *why);

/* The most frequent failure; NULL: none, or a trial has a result. */
const struct fault *fault_most (const struct sweep *s);

/* The fault that all trials share; NULL: none, or a trial has a result. */
const struct fault *fault_shared (const struct sweep *s);

/* Forget all failures, because somebody may have fixed the cause. */
void faults_forget (struct sweep *s);

/* Whether the experiment is paused because of a fault. */
bool sweep_is_faulty (const struct sweep *s);
