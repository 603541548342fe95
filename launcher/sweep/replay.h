/* SPDX-License-Identifier: Apache-2.0 */
/* Replay the decision log: what each event does to the state of a sweep. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Apply one event to the state; 'sweep' is a struct sweep. */
int sweep_apply (const struct event *event, void *sweep, struct slurmdl_error *err);

/* Whether a result that was put now would count. */
bool sweep_takes_result (struct sweep *s, const struct event *e);
