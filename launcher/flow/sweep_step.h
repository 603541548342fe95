/* SPDX-License-Identifier: Apache-2.0 */
/* A step that is a sweep: an experiment of its own. */
#pragma once

#include "launcher/flow/attempt.h"

/* Add the words that run it, or resume that of an attempt before. */
int flow_sweep_command (const struct flow_scope *c, char ***argv, struct slurmdl_error *err);

/* Whether the experiment of an attempt before has completed. */
bool flow_sweep_is_over (const struct flow_scope *c);

/* Set the outputs and values of the best trial; -1 with 'err'. */
int flow_sweep_take (const struct flow_scope *c, struct attempt_end *end,
                     struct slurmdl_error *err);

/* End all sweeps of a run: their workers are jobs of their own. */
void flow_kill_sweeps (const struct flow_run *r);
