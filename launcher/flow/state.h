/* SPDX-License-Identifier: Apache-2.0 */
/* How far the tasks of a run are, by its records. */
#pragma once

#include "launcher/flow/records.h"

enum flow_task_state {
    TASK_WAITING,
    TASK_RUNNING,
    TASK_FAILED,
    TASK_SKIPPED,
    TASK_CACHED,
    TASK_OK,
};
extern const char *const task_states[];

/* 'done' (if given) is its result, for the caller to release. */
enum flow_task_state flow_task_state (const struct flow_run *r, const struct flow_step *s,
                                      long task, json_t **done);

/* The result of a task of on_exit, where nothing was run: as flow_put(). */
int flow_put_skipped (const struct flow_run *r, const struct flow_step *s, long task,
                      struct slurmdl_error *err);

/* Tasks of a step, -1: not known yet. */
long flow_width (const struct flow_run *r, const struct flow_step *s);

/* The element of its list that a task has; NULL: it has no list. */
json_t *flow_item (const struct flow_run *r, const struct flow_step *s, long task);

/* How many tasks of a step are in each state; returns its width. */
long flow_count (const struct flow_run *r, const struct flow_step *s, long counts[TASK_OK + 1]);

/* Whether by these all tasks of a step have a result. */
bool flow_all_done (long width, const long counts[TASK_OK + 1]);

/* Whether all tasks of a step have a result, one at least of them no skip in
 * '*ran' (if given).
 */
bool flow_is_done (const struct flow_run *r, const struct flow_step *s, bool *ran);
