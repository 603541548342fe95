/* SPDX-License-Identifier: Apache-2.0 */
/* Run one task of a step, and record its result. */
#include "launcher/flow/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/subprocess.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

void flow_task_name (char *buf, size_t size, const struct flow_step *s, long task)
{
    if (s->foreach)
        snprintf (buf, size, "%s %ld", s->name, task);
    else
        snprintf (buf, size, "%s", s->name);
}

/* ---- tasks that need not run ---- */

/* Whether to skip the task because a step before it was skipped. */
static bool follows_skip (const struct flow_scope *c)
{
    for (size_t i = 0; i < c->s->nlinks; i++) {
        const struct flow_link *l = &c->s->links[i];
        const struct flow_step *to = &c->r->flow->steps[l->step];
        bool ran = true;
        if (l->wait == AFTER_EACH ? flow_task_state (c->r, to, c->task) == TASK_SKIPPED
                                  : l->wait == AFTER_OK && flow_is_done (c->r, to, &ran) && !ran)
            return true;
    }
    return false;
}

/* Takes ownership of 'left'. */
static int put_task_result (const struct flow_scope *c, json_t *left, const char *why,
                            enum flow_task_state state, struct slurmdl_error *err)
{
    struct event e = {
        .op = EVENT_DONE,
        .step = c->s->name,
        .task = c->task,
        .attempt = c->attempt,
        .start = c->start,
        .state = task_states[state],
        .why = why,
        .json = left,
    };
    int rv;

    json_object_set_new (left, "end", json_integer (time (NULL)));
    rv = flow_insist (c->r, &e, err);
    json_decref (left);
    return rv;
}

static enum flow_need settle_as (const struct flow_scope *c, json_t *left, const char *why,
                                 enum flow_task_state state, struct slurmdl_error *err)
{
    return put_task_result (c, left, why, state, err) < 0 ? NEED_ERROR : NEED_NOTHING;
}

static enum flow_need skip_task (const struct flow_scope *c, const char *why,
                                 struct slurmdl_error *err)
{
    return settle_as (c, json_object (), why, TASK_SKIPPED, err);
}

enum flow_need flow_settle (const struct flow_scope *c, struct slurmdl_error *err)
{
    char key[DIGEST_SIZE];
    json_t *entry;
    bool holds;

    if (flow_task_state (c->r, c->s, c->task) >= TASK_SKIPPED)
        return NEED_NOTHING;
    if (follows_skip (c))
        return skip_task (c, "a step before it was skipped", err);
    if (flow_condition (c, &holds, err) < 0)
        return NEED_ERROR;
    if (!holds)
        return skip_task (c, "its condition is false", err);
    if (c->s->on_exit)
        return NEED_RUN; /* whether it runs depends on how all others end */
    if (flow_key (c, key, err) < 0)
        return NEED_ERROR;
    entry = *key ? flow_cache_find (c->r, key) : NULL;
    return entry ? settle_as (c, entry, NULL, TASK_CACHED, err) : NEED_RUN;
}

bool flow_settle_step (const struct flow_run *r, const struct flow_step *s)
{
    long width = flow_width (r, s);
    bool all = width >= 0;

    for (long i = 0; i < width; i++) {
        const struct flow_scope c = { .r = r, .s = s, .task = i };
        /* the task itself reports errors when it runs */
        all &= flow_settle (&c, NULL) == NEED_NOTHING;
    }
    return all;
}

/* Whether this task runs in a Slurm job, and not under dl flow --local. */
static bool flow_is_in_job (void)
{
    return getenv ("SLURM_JOB_ID") && !getenv ("DL_FLOW_LOCAL");
}

/* ---- an attempt ---- */

/* Check that all steps that this one depends on have succeeded. */
static int check_steps_before (const struct flow_scope *c, struct slurmdl_error *err)
{
    for (size_t i = 0; i < c->s->nlinks; i++) {
        const struct flow_link *l = &c->s->links[i];
        const struct flow_step *to = &c->r->flow->steps[l->step];
        if (l->wait == AFTER_ANY
            || (l->wait == AFTER_EACH ? flow_task_state (c->r, to, c->task) >= TASK_SKIPPED
                                      : flow_is_done (c->r, to, NULL)))
            continue;
        errno = ECANCELED;
        return errorf (err, "the step '%s' has not succeeded", to->name);
    }
    return 0;
}

/* Record the begin of an attempt under the next free number, and return that. */
static long put_begin (const struct flow_scope *c, struct slurmdl_error *err)
{
    char host[FLOW_HOST_SIZE] = "";
    struct event e = {
        .op = EVENT_BEGIN,
        .step = c->s->name,
        .task = c->task,
        .start = c->start,
        .host = host,
        .pid = getpid (),
        .job = getenv ("SLURM_JOB_ID"),
    };
    enum published rv;

    gethostname (host, sizeof (host) - 1);
    do {
        e.attempt = (int64_t)flow_task (c->r, c->s, c->task)->n + 1;
        rv = flow_publish (c->r, e, err);
    } while (rv == PUBLISH_LATE);
    return rv == PUBLISH_DONE ? (long)e.attempt : -1;
}

static int publish_task_result (const struct flow_scope *c, const char *key,
                                const struct attempt_end *end, time_t began,
                                struct slurmdl_error *err)
{
    json_t *left = json_pack ("{s:s, s:O, s:O, s:I, s:s}", "key", key, "outputs", end->outputs,
                              "values", end->values, "begin", (json_int_t)began, "flow", c->r->dir);
    int rv;

    json_incref (left);
    rv = put_task_result (c, left, NULL, TASK_OK, err);
    if (rv == 0 && *key)
        flow_cache_put (c->r, key, left);
    json_decref (left);
    return rv;
}

static void complain_task_failed (const struct flow_scope *c, const char *why)
{
    char name[2 * FLOW_NAME_MAX];

    flow_task_name (name, sizeof (name), c->s, c->task);
    complain ("step %s failed: %s; %s/log", name, why, c->folder);
}

/* If too few good nodes or too little time is left, requeue the job to get other nodes or more
 * time; if its GPUs were idle, to leave them to others.  Slurm may refuse.
 */
static void begin_again_elsewhere (const struct flow_scope *c, const struct command_report *r,
                                   bool may_retry)
{
    char *nodes = command_bad_nodes (c->worker);

    if (flow_is_in_job () && (r->too_few_nodes || r->idle || (r->out_of_time && may_retry)))
        allocation_requeue (nodes);
    free (nodes);
}

static enum attempt_outcome outcome_of_failure (const struct command_report *r)
{
    if (r->stop)
        return ATTEMPT_TOLD;
    if (r->verdict.last)
        return ATTEMPT_LAST;
    /* do not wait for room on a full disk */
    return r->verdict.free && !r->verdict.error ? ATTEMPT_FREE : ATTEMPT_FAILED;
}

static enum condition_reason cause_of_failure (const struct command_report *r,
                                               enum attempt_outcome outcome)
{
    return outcome == ATTEMPT_LAST ? REASON_GIVEN_UP : r->verdict.cause;
}

static int put_failure (const struct flow_scope *c, const struct attempt_end *end, const char *why,
                        enum attempt_outcome outcome, double began, struct slurmdl_error *err)
{
    const struct event e = {
        .op = outcome == ATTEMPT_TOLD ? EVENT_PARK : EVENT_FAIL,
        .step = c->s->name,
        .task = c->task,
        .start = c->start,
        .attempt = c->attempt,
        .seconds = monotonic () - began,
        .status = shell_status (end->report.status),
        .free = outcome == ATTEMPT_FREE,
        .cause = cause_of_failure (&end->report, outcome),
        .why = why,
    };

    return flow_insist (c->r, &e, err);
}

/* 'failed' counts the failures before this attempt. */
static enum attempt_outcome make_attempt (const struct flow_scope *step, long failed,
                                          struct slurmdl_error *err)
{
    struct flow_scope here = *step, *c = &here;
    struct slurmdl_error why = { "" };
    struct attempt_end end = { .values = NULL };
    char folder[PATH_MAX], key[DIGEST_SIZE] = "";
    time_t began = time (NULL);
    double from = monotonic ();
    enum attempt_outcome outcome = ATTEMPT_ERROR;

    if ((here.attempt = put_begin (c, err)) < 0
        || flow_make_folder (folder, c->r, c->s, c->task, c->attempt, err) < 0)
        return ATTEMPT_ERROR;
    c->folder = folder;
    if (check_steps_before (c, &why) == 0 && flow_settle (c, &why) != NEED_ERROR
        && flow_key (c, key, &why) == 0 && attempt_run (c, &end, &why) == 0) {
        if (publish_task_result (c, key, &end, began, err) == 0)
            outcome = ATTEMPT_DONE;
    } else {
        outcome = outcome_of_failure (&end.report);
        if (put_failure (c, &end, why.text, outcome, from, err) < 0)
            outcome = ATTEMPT_ERROR;
        else
            complain_task_failed (c, why.text);
    }
    if (outcome == ATTEMPT_FREE || outcome == ATTEMPT_FAILED || outcome == ATTEMPT_TOLD)
        begin_again_elsewhere (c, &end.report, failed < c->s->retries);
    json_decref (end.outputs);
    json_decref (end.values);
    return outcome;
}

static int try_task (struct flow_scope *c)
{
    struct slurmdl_error err = { "" };

    for (;;) {
        struct tries n;
        if (flow_sync (c->r, &err) < 0)
            return fail (&err);
        if (flow_gives_up (c->s, flow_task (c->r, c->s, c->task), c->start, &n))
            return EXIT_FAILED;
        /* a later start replaces this one */
        if (flow_is_stopped (c->r) || flow_starts (c->r, c->s) > c->start)
            return EXIT_STOPPED;
        if (check_steps_before (c, NULL) == 0 && flow_settle (c, NULL) == NEED_NOTHING)
            return EXIT_OK;
        switch (make_attempt (c, n.failed, &err)) {
        case ATTEMPT_ERROR:
            return fail (&err);
        case ATTEMPT_DONE:
            return EXIT_OK;
        case ATTEMPT_LAST:
            return EXIT_FAILED;
        case ATTEMPT_TOLD:
            return EXIT_STOPPED;
        case ATTEMPT_OPEN:
        case ATTEMPT_FAILED:
        case ATTEMPT_FREE:
            break;
        }
    }
}

/* "completed" or "failed", for exit handlers; '*failed' lists the steps that are not done, "a b",
 * and the caller frees it.
 */
static const char *outcome_of_steps (const struct flow_run *r, char **failed)
{
    const struct flow *f = r->flow;
    bool good = true;
    size_t size;
    FILE *o = xopen_memstream (failed, &size);

    for (size_t i = 0; i < f->n; i++) {
        const struct flow_step *s = &f->steps[f->order[i]];
        if (s->on_exit || flow_is_done (r, s, NULL))
            continue;
        fprintf (o, "%s%s", good ? "" : " ", s->name);
        good = false;
    }
    xclose_memstream (o);
    return good ? "completed" : "failed";
}

int flow_task_run (const struct flow_run *r, const struct flow_step *s, long task, long start)
{
    struct flow_scope c = { .r = r, .s = s, .task = task, .start = start };
    char *failed = NULL;
    double seconds;
    int rv;

    if (task < 0 || task >= flow_width (r, s)) {
        complain ("step '%s' has no task %ld", s->name, task);
        return EXIT_USAGE;
    }
    if (flow_is_in_job () && (seconds = allocation_seconds_left ()) > 0)
        c.end = monotonic () + seconds;
    if (s->on_exit) {
        c.outcome = outcome_of_steps (r, &failed);
        c.failed = failed;
    }
    c.worker = command_worker_create ();
    rv = try_task (&c);
    command_worker_destroy (c.worker);
    free (failed);
    return rv;
}
