/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs for the steps of a flow, which wait for each other by dependencies. */
#pragma once

#include "launcher/flow/run_folder.h"

/* Submit a job, or an array, for each step that lacks one; tasks that need not
 * be run get their result here.  'again': Slurm may have jobs of it already,
 * and is asked once.  Returns how many jobs were submitted, -1 with 'err'.
 */
long flow_submit (const struct flow_run *r, bool again, struct slurmdl_error *err);

/* A step with on_exit, whose job 'start' has begun: whether it had to be
 * submitted again, because others were after it.  1, 0, or -1 with 'err'.
 */
int flow_exit_again (const struct flow_run *r, const struct flow_step *s, long start,
                     struct slurmdl_error *err);
