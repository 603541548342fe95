/* SPDX-License-Identifier: Apache-2.0 */
/* The log of a run, replayed: what was started, what was tried, and what it left. */
#include "launcher/flow/run.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sweep/log.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/base/process_id.h"

struct step_history {
    struct flow_start *starts;
    size_t nstarts;
    struct flow_task *tasks; /* those of which something is known */
    size_t ntasks;
    struct conditions conditions;
};

struct flow_history {
    const struct flow *flow;
    struct log *log;
    struct step_history *steps; /* of each step, and of "next+" */
    bool is_stopped;
};

static struct step_history *history_of (const struct flow_run *r, const struct flow_step *s)
{
    bool is_next = !strcmp (s->name, FLOW_NEXT);

    return &r->history->steps[is_next ? r->flow->n : flow_step_number (r->flow, s)];
}

/* ---- queries ---- */

long flow_starts (const struct flow_run *r, const struct flow_step *s)
{
    return (long)history_of (r, s)->nstarts;
}

const struct flow_start *flow_start_of (const struct flow_run *r, const struct flow_step *s, long n)
{
    const struct step_history *h = history_of (r, s);

    return n >= 1 && n <= (long)h->nstarts ? &h->starts[n - 1] : NULL;
}

long flow_job (const struct flow_run *r, const struct flow_step *s)
{
    const struct step_history *h = history_of (r, s);

    for (size_t i = h->nstarts; i > 0; i--)
        if (h->starts[i - 1].job > 0)
            return h->starts[i - 1].job;
    return 0;
}

const struct flow_task *flow_task (const struct flow_run *r, const struct flow_step *s, long task)
{
    static const struct flow_task nothing;
    const struct step_history *h = history_of (r, s);

    return task >= 0 && task < (long)h->ntasks ? &h->tasks[task] : &nothing;
}

enum flow_process flow_process (const char *host, int64_t pid, int64_t began)
{
    char here[FLOW_HOST_SIZE] = "";

    gethostname (here, sizeof (here) - 1);
    if (pid <= 0 || !host)
        return PROCESS_ENDED;
    if (strcmp (host, here))
        return PROCESS_ELSEWHERE;
    if (began > 0 ? process_has_ended ("/proc", pid, (uint64_t)began)
                  : kill ((pid_t)pid, 0) < 0 && errno != EPERM)
        return PROCESS_ENDED;
    return PROCESS_RUNS;
}

struct conditions *flow_conditions (const struct flow_run *r, const struct flow_step *s)
{
    return &history_of (r, s)->conditions;
}

bool flow_is_stopped (const struct flow_run *r)
{
    return r->history->is_stopped;
}

/* ---- how far its tasks are ---- */

const char *const task_states[] = { "waiting", "running", "failed", "skipped", "cached", "ok" };

static enum flow_task_state state_of_result (const json_t *done)
{
    const char *text = json_string_value (json_object_get (done, "status"));

    for (int i = TASK_SKIPPED; text && i <= TASK_OK; i++)
        if (!strcmp (text, task_states[i]))
            return (enum flow_task_state)i;
    return TASK_OK;
}

/* An exit handler has a result for each start; only the newest start's counts. */
const json_t *flow_done (const struct flow_run *r, const struct flow_step *s, long task)
{
    const struct flow_task *t = flow_task (r, s, task);

    return s->on_exit && t->done_start != flow_starts (r, s) ? NULL : t->done;
}

enum flow_task_state flow_task_state (const struct flow_run *r, const struct flow_step *s,
                                      long task)
{
    const struct flow_task *t = flow_task (r, s, task);
    const json_t *done = flow_done (r, s, task);
    const struct flow_attempt *last = t->n ? &t->attempts[t->n - 1] : NULL;

    if (done)
        return state_of_result (done);
    /* an attempt of an earlier start is over */
    if (!last || last->start < flow_starts (r, s))
        return TASK_WAITING;
    return last->outcome == ATTEMPT_OPEN ? TASK_RUNNING : TASK_FAILED;
}

/* The list that the earlier step reported; an empty one if that step was skipped. */
static json_t *list_of_step (const struct flow_run *r, const struct flow_step *s)
{
    const struct flow_step *from = s->source < 0 ? NULL : &r->flow->steps[s->source];
    const json_t *done = from ? flow_done (r, from, 0) : NULL;
    json_t *list = json_object_get (json_object_get (done, "values"), s->source_value);

    if (s->items || !done)
        return json_incref (s->items);
    return json_is_array (list) ? json_incref (list) : json_array ();
}

long flow_width (const struct flow_run *r, const struct flow_step *s)
{
    json_t *list;
    size_t n;

    if (!s->foreach)
        return 1;
    list = list_of_step (r, s);
    n = json_array_size (list);
    json_decref (list);
    return list ? (long)(n > FLOW_WIDTH_MAX ? FLOW_WIDTH_MAX : n) : -1;
}

json_t *flow_item (const struct flow_run *r, const struct flow_step *s, long task)
{
    json_t *list = s->foreach ? list_of_step (r, s) : NULL;
    json_t *item = json_incref (json_array_get (list, (size_t)task));

    json_decref (list);
    return item;
}

long flow_count (const struct flow_run *r, const struct flow_step *s, long counts[TASK_OK + 1])
{
    long width = flow_width (r, s);

    memset (counts, 0, (TASK_OK + 1) * sizeof (*counts));
    for (long i = 0; i < width; i++)
        counts[flow_task_state (r, s, i)]++;
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

/* An attempt that is open died before it could record its end. */
bool flow_gives_up (const struct flow_step *s, const struct flow_task *t, long start,
                    struct tries *n)
{
    bool over = false;

    *n = (struct tries){ 0 };
    for (size_t i = 0; i < t->n; i++) {
        enum attempt_outcome end = t->attempts[i].outcome;
        if (t->attempts[i].start == start && end != ATTEMPT_DONE && end != ATTEMPT_TOLD)
            over |=
                tries_add (n,
                           (struct try_end){ .last = end == ATTEMPT_LAST,
                                             .free = end == ATTEMPT_OPEN || end == ATTEMPT_FREE },
                           s->retries);
    }
    return over;
}

/* ---- conditions ---- */

static bool note_step (const struct flow_run *r, const struct flow_step *s, const struct event *e,
                       enum life_event_kind kind, enum condition_reason reason, const char *message)
{
    return conditions_apply (flow_conditions (r, s),
                             &(struct life_event){ kind, e->time, reason, message });
}

static bool step_has_failed (const struct flow_run *r, const struct flow_step *s)
{
    return flow_conditions (r, s)->last == CONDITION_FAILED;
}

static bool task_is_given_up (const struct flow_run *r, const struct flow_step *s, long task)
{
    const struct flow_task *t = flow_task (r, s, task);
    struct tries n;
    bool runs = t->n > 0 && t->attempts[t->n - 1].outcome == ATTEMPT_OPEN;

    return !runs && !flow_done (r, s, task) && flow_gives_up (s, t, flow_starts (r, s), &n);
}

/* Find the failed step that keeps a task from ever running; NULL: there is none. */
static const struct flow_step *task_blocker (const struct flow_run *r, const struct flow_step *s,
                                             long task)
{
    for (size_t i = 0; i < s->nlinks; i++) {
        const struct flow_link *l = &s->links[i];
        const struct flow_step *to = &r->flow->steps[l->step];
        if ((l->wait == AFTER_OK && step_has_failed (r, to))
            || (l->wait == AFTER_EACH
                && (task_is_given_up (r, to, task)
                    || (step_has_failed (r, to) && !flow_done (r, to, task)))))
            return to;
    }
    return NULL;
}

/* Record that a step failed if none of its unfinished tasks can ever run again.  Returns whether
 * that changed its conditions.
 */
static bool note_failure (const struct flow_run *r, const struct flow_step *s,
                          const struct event *e)
{
    long width = flow_width (r, s);
    const struct flow_step *before = NULL;
    const char *why = NULL;
    bool given_up = false;

    for (long i = 0; i < (width < 0 ? 1 : width); i++) {
        const struct flow_task *t = flow_task (r, s, i);
        const struct flow_step *blocker;
        if (flow_done (r, s, i))
            continue;
        if (task_is_given_up (r, s, i)) {
            given_up = true;
            why = t->attempts[t->n - 1].why;
        } else if ((blocker = task_blocker (r, s, i)))
            before = blocker;
        else
            return false;
    }
    return given_up
               ? note_step (r, s, e, LIFE_FAILED, REASON_GIVEN_UP, why)
               : before
                     && note_step (r, s, e, LIFE_FAILED, REASON_STEP_BEFORE_FAILED, before->name);
}

static void note_success (const struct flow_run *r, const struct flow_step *s,
                          const struct event *e)
{
    long counts[TASK_OK + 1];
    long width = flow_count (r, s, counts);

    if (!flow_all_done (width, counts))
        return;
    note_step (r, s, e, LIFE_SUCCEEDED,
               counts[TASK_OK]       ? REASON_STEP_COMPLETED
               : counts[TASK_CACHED] ? REASON_STEP_CACHED
                                     : REASON_STEP_SKIPPED,
               e->why);
}

/* An empty list completes the step that was to run a task for each element.  A failure also fails
 * the steps that wait for this one.
 */
static void note_step_end (const struct flow_run *r, const struct flow_step *s,
                           const struct event *e)
{
    note_success (r, s, e);
    for (size_t i = 0; i < r->flow->n; i++)
        if (r->flow->steps[i].source == (long)flow_step_number (r->flow, s))
            note_success (r, &r->flow->steps[i], e);
    if (!note_failure (r, s, e))
        return;
    for (size_t i = 0; i < r->flow->n; i++)
        note_failure (r, &r->flow->steps[r->flow->order[i]], e);
}

/* Starting a step again also revives the steps that failed only because they wait for it. */
static void note_step_start (const struct flow_run *r, const struct flow_step *s,
                             const struct event *e)
{
    const struct conditions *c;

    if (flow_starts (r, s) > 1)
        note_step (r, s, e, LIFE_REVIVED, REASON_FLOW_RESUMED, NULL);
    for (size_t i = 0; i < r->flow->n; i++) {
        const struct flow_step *after = &r->flow->steps[r->flow->order[i]];
        c = flow_conditions (r, after);
        if (after != s && c->last == CONDITION_FAILED && !task_blocker (r, after, 0)
            && c->list[CONDITION_FAILED].reason == REASON_STEP_BEFORE_FAILED)
            note_step (r, after, e, LIFE_REVIVED, REASON_FLOW_RESUMED, NULL);
    }
}

static void note_all (const struct flow_run *r, const struct event *e, enum life_event_kind kind,
                      enum condition_reason reason)
{
    for (size_t i = 0; i < r->flow->n; i++)
        note_step (r, &r->flow->steps[i], e, kind, reason, NULL);
}

/* ---- replay ---- */

static struct flow_step *step_of_event (const struct flow_run *r, const struct event *e,
                                        struct flow_step *next)
{
    if (e->step && !strcmp (e->step, FLOW_NEXT))
        return next;
    return e->step ? flow_step_find (r->flow, e->step) : NULL;
}

static struct flow_task *grow_task (struct step_history *h, int64_t task)
{
    while ((int64_t)h->ntasks <= task) {
        XGROW (h->tasks, h->ntasks);
        h->tasks[h->ntasks++] = (struct flow_task){ .n = 0 };
    }
    return &h->tasks[task];
}

static void replay_start (const struct flow_run *r, const struct flow_step *s,
                          struct step_history *h, const struct event *e)
{
    if (e->start != (int64_t)h->nstarts + 1)
        return;
    XGROW (h->starts, h->nstarts);
    h->starts[h->nstarts++] = (struct flow_start){
        .mode = xstrdup (e->mode),
        .host = xstrdup (e->host),
        .pid = e->pid,
        .began = e->began,
        .jobs = xstrdup (e->jobs),
    };
    if (strcmp (s->name, FLOW_NEXT))
        note_step_start (r, s, e);
}

static void replay_submit (struct step_history *h, const struct event *e)
{
    if (e->start >= 1 && e->start <= (int64_t)h->nstarts && h->starts[e->start - 1].job == 0)
        h->starts[e->start - 1].job = e->job ? strtol (e->job, NULL, 10) : 0;
}

static void replay_begin (const struct flow_run *r, const struct flow_step *s,
                          struct step_history *h, const struct event *e)
{
    struct flow_task *t = grow_task (h, e->task);

    if (e->attempt != (int64_t)t->n + 1)
        return;
    /* the previous attempt died before it could record its end */
    if (t->n > 0 && t->attempts[t->n - 1].outcome == ATTEMPT_OPEN)
        note_step (r, s, e, LIFE_BROKEN, REASON_WORKER_LOST, NULL);
    XGROW (t->attempts, t->n);
    t->attempts[t->n++] = (struct flow_attempt){
        .start = (long)e->start,
        .host = xstrdup (e->host),
        .pid = e->pid,
        .job = xstrdup (e->job),
        .outcome = ATTEMPT_OPEN,
    };
    note_step (r, s, e, LIFE_STARTED, REASON_ATTEMPT_STARTED, NULL);
}

static enum attempt_outcome outcome_of_event (const struct event *e)
{
    if (e->op == EVENT_PARK)
        return ATTEMPT_TOLD;
    if (e->free)
        return ATTEMPT_FREE;
    return e->cause == REASON_GIVEN_UP ? ATTEMPT_LAST : ATTEMPT_FAILED;
}

static void replay_failure (const struct flow_run *r, const struct flow_step *s,
                            struct step_history *h, const struct event *e)
{
    struct flow_task *t = grow_task (h, e->task);
    struct flow_attempt *a;

    if (e->attempt < 1 || e->attempt > (int64_t)t->n)
        return;
    a = &t->attempts[e->attempt - 1];
    if (a->outcome != ATTEMPT_OPEN)
        return;
    a->outcome = outcome_of_event (e);
    a->why = xstrdup (e->why);
    note_step (r, s, e, LIFE_BROKEN,
               e->cause              ? e->cause
               : e->op == EVENT_PARK ? REASON_PARKED
                                     : REASON_ATTEMPT_FAILED,
               e->why);
    note_step_end (r, s, e);
}

/* Only the first result of a task counts, or, for an exit handler, the first one of each start. */
static void replay_done (const struct flow_run *r, const struct flow_step *s,
                         struct step_history *h, const struct event *e)
{
    struct flow_task *t = grow_task (h, e->task);

    if (e->attempt >= 1 && e->attempt <= (int64_t)t->n
        && t->attempts[e->attempt - 1].outcome == ATTEMPT_OPEN)
        t->attempts[e->attempt - 1].outcome = ATTEMPT_DONE;
    if (t->done && (!s->on_exit || e->start <= t->done_start))
        return;
    json_decref (t->done);
    t->done = json_is_object (e->json) ? json_copy (e->json) : json_object ();
    json_object_set_new (t->done, "status", json_string (e->state ?: ""));
    if (e->why)
        json_object_set_new (t->done, "why", json_string (e->why));
    t->done_start = (long)e->start;
    if (strcmp (s->name, FLOW_NEXT))
        note_step_end (r, s, e);
}

/* Ignore events that make no sense: they came too late, or dl did not write them. */
static int replay_event (const struct event *e, void *run, struct slurmdl_error *err)
{
    const struct flow_run *r = run;
    struct flow_step next = { .name = (char *)FLOW_NEXT };
    struct flow_step *s = step_of_event (r, e, &next);

    (void)err;
    if (e->op == EVENT_STOP || e->op == EVENT_RESUME) {
        r->history->is_stopped = e->op == EVENT_STOP;
        note_all (r, e, e->op == EVENT_STOP ? LIFE_SUSPENDED : LIFE_RESUMED,
                  e->op == EVENT_STOP ? REASON_FLOW_STOPPED : REASON_FLOW_RESUMED);
    }
    if (!s || e->task < 0 || e->task >= FLOW_WIDTH_MAX)
        return 0;
    if (e->op == EVENT_START)
        replay_start (r, s, history_of (r, s), e);
    else if (e->op == EVENT_SUBMIT)
        replay_submit (history_of (r, s), e);
    else if (e->op == EVENT_DONE)
        replay_done (r, s, history_of (r, s), e);
    else if (e->op == EVENT_BEGIN && s != &next)
        replay_begin (r, s, history_of (r, s), e);
    else if ((e->op == EVENT_FAIL || e->op == EVENT_PARK) && s != &next)
        replay_failure (r, s, history_of (r, s), e);
    return 0;
}

/* ---- its log ---- */

int flow_sync (const struct flow_run *r, struct slurmdl_error *err)
{
    return log_sync (r->history->log, replay_event, (void *)r, err) < 0 ? -1 : 0;
}

enum published flow_publish (const struct flow_run *r, struct event e, struct slurmdl_error *err)
{
    enum published rv;

    e = event_now (e);
    e.by = user_name ();
    rv = log_append (r->history->log, &e, 1, err);
    if (rv == PUBLISH_DONE)
        replay_event (&e, (void *)r, err);
    else if (rv == PUBLISH_LATE && flow_sync (r, err) < 0)
        rv = PUBLISH_FAILED;
    return rv;
}

int flow_insist (const struct flow_run *r, const struct event *e, struct slurmdl_error *err)
{
    enum published rv;

    do
        rv = flow_publish (r, *e, err);
    while (rv == PUBLISH_LATE);
    return rv == PUBLISH_DONE ? 0 : -1;
}

int flow_mark (const struct flow_run *r, bool stop, struct slurmdl_error *err)
{
    const struct event e = { .op = stop ? EVENT_STOP : EVENT_RESUME };

    if (flow_sync (r, err) < 0)
        return -1;
    return flow_is_stopped (r) == stop ? 0 : flow_insist (r, &e, err);
}

int flow_put_skipped (const struct flow_run *r, const struct flow_step *s, long task,
                      struct slurmdl_error *err)
{
    const struct event e = {
        .op = EVENT_DONE,
        .step = s->name,
        .task = task,
        .start = flow_starts (r, s),
        .state = task_states[TASK_SKIPPED],
        .why = "nothing was run",
    };

    return flow_insist (r, &e, err);
}

struct flow_history *flow_history_open (struct flow_run *r, struct slurmdl_error *err)
{
    struct flow_history *h;
    struct event created = { .time = json_number_value (json_object_get (r->about, "time")) };
    char path[PATH_MAX];
    struct log *log;

    if (snprintf (path, sizeof (path), "%s/log", r->dir) >= (int)sizeof (path)
        || !(log = log_create (path, err)))
        return NULL;
    h = xcalloc (1, sizeof (*h));
    h->flow = r->flow;
    h->log = log;
    h->steps = xcalloc (r->flow->n + 1, sizeof (*h->steps));
    r->history = h;
    note_all (r, &created, LIFE_CREATED, REASON_CREATED);
    return h;
}

static void free_step (struct step_history *h)
{
    for (size_t i = 0; i < h->nstarts; i++) {
        free (h->starts[i].mode);
        free (h->starts[i].host);
        free (h->starts[i].jobs);
    }
    for (size_t i = 0; i < h->ntasks; i++) {
        struct flow_task *t = &h->tasks[i];
        for (size_t k = 0; k < t->n; k++) {
            free (t->attempts[k].host);
            free (t->attempts[k].job);
            free (t->attempts[k].why);
        }
        free (t->attempts);
        json_decref (t->done);
    }
    free (h->starts);
    free (h->tasks);
    conditions_free (&h->conditions);
}

void flow_history_close (struct flow_history *h)
{
    if (!h)
        return;
    for (size_t i = 0; i <= h->flow->n; i++)
        free_step (&h->steps[i]);
    free (h->steps);
    log_destroy (h->log);
    free (h);
}
