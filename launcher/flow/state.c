/* SPDX-License-Identifier: Apache-2.0 */
/* How far the tasks of a run are, by its records. */
#include "launcher/flow/state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const task_states[] = { "waiting", "running", "failed", "skipped", "cached", "ok" };

static enum flow_task_state state_of_result (const json_t *done)
{
    const char *text = json_string_value (json_object_get (done, "status"));

    for (int i = TASK_SKIPPED; text && i <= TASK_OK; i++)
        if (!strcmp (text, task_states[i]))
            return (enum flow_task_state)i;
    return TASK_OK;
}

static long start_of (const struct flow_run *r, const struct flow_step *s, long task, long attempt)
{
    json_t *begin = flow_record (r, s, task, "begin", attempt);
    long start = (long)json_integer_value (json_object_get (begin, "start"));

    json_decref (begin);
    return start;
}

static bool has_ended (const struct flow_run *r, const struct flow_step *s, long task, long attempt)
{
    char path[PATH_MAX];

    flow_path (path, r, s, task, "end", attempt);
    return access (path, F_OK) == 0;
}

enum flow_task_state flow_task_state (const struct flow_run *r, const struct flow_step *s,
                                      long task, json_t **done)
{
    long start = s->on_exit ? flow_last (r, s, -1, "intent") : 0;
    json_t *v = flow_record (r, s, task, "done", start);
    enum flow_task_state state = v ? state_of_result (v) : TASK_WAITING;
    long k;

    /* an attempt of an earlier start is over */
    if (!v && (k = flow_last (r, s, task, "begin")) > 0
        && start_of (r, s, task, k) >= flow_last (r, s, -1, "intent"))
        state = has_ended (r, s, task, k) ? TASK_FAILED : TASK_RUNNING;
    if (done)
        *done = v;
    else
        json_decref (v);
    return state;
}

int flow_put_skipped (const struct flow_run *r, const struct flow_step *s, long task,
                      struct slurmdl_error *err)
{
    json_t *record =
        json_pack ("{s:s, s:s}", "status", task_states[TASK_SKIPPED], "why", "nothing was run");

    return flow_put (r, s, task, "done", 0, record, err);
}

/* The list of another step's result; a reference of the caller's. */
static json_t *list_of (const struct flow_run *r, const struct flow_step *s)
{
    json_t *done, *list = NULL;

    if (s->items)
        return json_incref (s->items);
    if (s->source < 0)
        return NULL;
    done = flow_record (r, &r->flow->steps[s->source], 0, "done", 0);
    if (done) {
        list = json_incref (json_object_get (json_object_get (done, "values"), s->source_value));
        if (!json_is_array (list)) { /* it was skipped */
            json_decref (list);
            list = json_array ();
        }
    }
    json_decref (done);
    return list;
}

long flow_width (const struct flow_run *r, const struct flow_step *s)
{
    json_t *list;
    size_t n;

    if (!s->foreach)
        return 1;
    list = list_of (r, s);
    n = json_array_size (list);
    json_decref (list);
    return list ? (long)(n > FLOW_WIDTH_MAX ? FLOW_WIDTH_MAX : n) : -1;
}

json_t *flow_item (const struct flow_run *r, const struct flow_step *s, long task)
{
    json_t *list = s->foreach ? list_of (r, s) : NULL;
    json_t *item = json_incref (json_array_get (list, (size_t)task));

    json_decref (list);
    return item;
}

long flow_count (const struct flow_run *r, const struct flow_step *s, long counts[TASK_OK + 1])
{
    long width = flow_width (r, s);
    bool *begun = flow_tasks_begun (r, s, width);

    memset (counts, 0, (TASK_OK + 1) * sizeof (*counts));
    for (long i = 0; i < width; i++)
        counts[!begun || begun[i] ? flow_task_state (r, s, i, NULL) : TASK_WAITING]++;
    free (begun);
    return width;
}

bool flow_all_done (long width, const long counts[TASK_OK + 1])
{
    return width >= 0 && counts[TASK_OK] + counts[TASK_CACHED] + counts[TASK_SKIPPED] == width;
}

bool flow_is_done (const struct flow_run *r, const struct flow_step *s, bool *ran)
{
    long counts[TASK_OK + 1];
    long width = flow_count (r, s, counts);

    if (ran)
        *ran = counts[TASK_OK] + counts[TASK_CACHED] > 0;
    return flow_all_done (width, counts);
}
