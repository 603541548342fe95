/* SPDX-License-Identifier: Apache-2.0 */
/* The states of an experiment, and the requests that lead from one to another.
 */
#pragma once

#include "launcher/sweep/sweep.h"

/* Whether a request (EVENT_PAUSE to EVENT_KILL, EVENT_CONTINUE, EVENT_ARCHIVE)
 * makes sense in a state; all other events do in each.
 */
bool sweep_allows (enum sweep_state state, enum event_op op);

/* The state after a request that makes sense, or after EVENT_END. */
enum sweep_state sweep_next_state (enum sweep_state state, enum event_op op);

/* No worker is to work: the states from SWEEP_STOPPED on. */
bool sweep_has_ended (const struct sweep *s);

/* "running", "paused", ... as users see it. */
const char *sweep_state_name (enum sweep_state state);
