/* SPDX-License-Identifier: Apache-2.0 */
/* Replay the decision log: what each event does to the state of a sweep. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Apply one event to the state; 'sweep' is a struct sweep. */
int sweep_apply (const struct event *event, void *sweep, struct slurmdl_error *err);

/* Whether a result that was published now would count. */
bool sweep_takes_result (struct sweep *s, const struct event *e);

/* Whether the worker of 'slot' is to leave. */
bool sweep_retires (const struct sweep *s, const char *slot);

/* ---- failures in a row on one node ---- */

/* Whether the node seems to be at fault now that an attempt of this trial has failed there:
 * attempts of several trials failed there in a row, while as many succeeded elsewhere.  Never true
 * of most nodes.
 */
bool host_spoils (const struct sweep *s, const char *name, long trial);

/* ---- equal failures, counted until a trial gives a result ---- */

/* So many equal failures are a fault that all trials share. */
enum { FAULT_LIMIT = 3, FAULT_KEY = 192 };

/* What equal failures have in common: 'why' without paths and numbers other than exit statuses and
 * signals.
 */
void fault_key (char key[FAULT_KEY], const char *why);

/* Count a failed attempt, as its event says. */
void fault_note (struct sweep *s, const struct event *e);

/* The failures so far that equal 'why'; NULL: none. */
const struct fault *fault_like (const struct sweep *s, const char *why);

/* The most frequent failure; NULL: none, or there is a result. */
const struct fault *fault_most (const struct sweep *s);

/* The fault that all trials share; NULL: none, or there is a result. */
const struct fault *fault_shared (const struct sweep *s);

/* Forget all failures, because somebody may have fixed the cause. */
void faults_forget (struct sweep *s);

/* Whether the experiment is paused because of a fault. */
bool sweep_is_faulty (const struct sweep *s);
