/* SPDX-License-Identifier: Apache-2.0 */
/* Run one task of a step, and record what it leaves. */
#pragma once

#include "launcher/flow/values.h"

/* Put the result of a task that need not be run: one that is to be skipped, or
 * was seen before.  All that it waits for must have ended.  Returns 1 if there
 * is a result now, 0 if it is to be run, -1 with 'err'.
 */
int flow_settle (const struct flow_scope *c, struct slurmdl_error *err);

/* The same of all tasks of a step: whether there is nothing left to run. */
bool flow_settle_step (const struct flow_run *r, const struct flow_step *s);

/* Try a task until it succeeds or has failed for good; 'start' is the number
 * under which it was started (intent.N): a later one takes its place.  Returns
 * an exit status, after a line.
 */
int flow_task_run (const struct flow_run *r, const struct flow_step *s, long task, long start);

/* "train", or "train 3" of one with a list. */
void flow_task_name (char *buf, size_t size, const struct flow_step *s, long task);
