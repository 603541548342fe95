/* SPDX-License-Identifier: Apache-2.0 */
/* A flow that recurs: the job that makes the next run. */
#pragma once

#include "launcher/flow/state.h"

/* As whose job it is noted: a small one. */
struct flow_step flow_next_step (const struct flow_run *r);

/* Submit it, if the flow recurs and it was not; -1 with 'err'. */
int flow_submit_next (const struct flow_run *r, struct slurmdl_error *err);

/* Seconds of --every, 0: it is not given.  Returns an exit status, after a
 * line.
 */
int flow_check_every (const struct settings *st, double *every);
