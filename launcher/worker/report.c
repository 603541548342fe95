/* SPDX-License-Identifier: Apache-2.0 */
/* Publish how an attempt ended: results, failures, faults that all attempts share. */
#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/space.h"
#include "launcher/config/worker_settings.h"
#include "launcher/worker/worker_private.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/hparams.h"
#include "launcher/config/log_policy.h"
#include "launcher/job/job.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/results_file.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"

/* ---- faults that all attempts share ---- */

/* Seconds: the longest that a worker waits for others, the delay before it goes on in place of
 * another, and how long the first attempts of an experiment have to log a metric.
 */
#define HOLD_MAX      60.0
#define TURN_SECONDS  0.2
#define START_SECONDS 3.0

static bool has_other_open (const struct sweep *s, long but)
{
    return s->nopen > 1 || (s->nopen == 1 && s->open[0] != but);
}

/* Whether the search goes on once the trial 'failed' (0: none) has been given up. */
static bool search_goes_on (const struct sweep *s, long failed)
{
    double *x = xcalloc (s->exp->space->nparams + 1, sizeof (*x));
    struct searcher *copy = searcher_copy (s->searcher);
    enum search_answer answer = SEARCH_WAIT;
    struct search_op op;

    if (copy && (!failed || searcher_exit (copy, failed) == 0))
        answer = searcher_ask (copy, &op, x);
    searcher_destroy (copy);
    free (x);
    return answer != SEARCH_DONE;
}

/* Whether the failure 'v' of the trial's attempt, which is about to be published, is a case of a
 * shared fault: then the trial is not given up.
 */
static bool fault_spares_trial (const struct worker *w, long trial, const struct failure_class *v)
{
    const struct sweep *s = w->sweep;
    const struct fault *f = fault_like (s, v->cause, v->why);

    return f && f->count + 1 >= FAULT_LIMIT
           && (has_other_open (s, trial) || search_goes_on (s, trial));
}

/* The name by which peers know this host, which may not be Slurm's name of the node. */
static const char *own_host (const struct worker *w, const struct peer_info *list, long n)
{
    for (long i = 0; i < n; i++)
        if (!strcmp (list[i].nonce, worker_nonce (w)))
            return list[i].host;
    return NULL;
}

static bool works_elsewhere (struct worker *w)
{
    struct peer_info *list = NULL;
    long n = peer_list (w->sweep->dir, &list, NULL);
    const char *here = own_host (w, list, n);
    bool found = false;

    for (long i = 0; here && i < n && !found; i++)
        found = !list[i].gone && strcmp (list[i].host, here)
                && !peer_dead (w->peer, list[i].nonce, w->sweep->exp->worker->lease);
    free (list);
    return found;
}

static int attempts_elsewhere (struct worker *w)
{
    int n = 0;

    for (long i = 0; i < w->sweep->nopen; i++)
        n += worker_trains (w, w->sweep->open[i]);
    return n;
}

/* Running attempts may soon show that all share the fault, so wait for them about as long as the
 * failed ones took.  The worker that failed last goes on first.
 */
static bool holds_back (struct worker *w)
{
    const struct fault *f = fault_most (w->sweep);
    double now = monotonic ();

    if (!f)
        return false;
    if (w->held != f->count) {
        w->held = f->count;
        w->held_until = now + fmin (2 * f->seconds + 1, HOLD_MAX);
        if (f->count + 1 == FAULT_LIMIT && strcmp (f->slot, w->slot))
            worker_sleep (w, TURN_SECONDS);
    }
    return now < w->held_until && f->count + attempts_elsewhere (w) >= FAULT_LIMIT;
}

/* Slots are numbered: local-PID-1 ..., JOB_0 ... or JOB_0.0 ... */
static bool begins_after_others (const struct worker *w)
{
    long n, lane = 0;

    if (sscanf (w->slot, "local-%*d-%ld", &n) == 1)
        return n > FAULT_LIMIT;
    return sscanf (w->slot, "%*d_%ld.%ld", &n, &lane) >= 1
           && (n >= FAULT_LIMIT || lane >= FAULT_LIMIT);
}

/* A script that logged a metric got through its imports and arguments. */
static bool trial_has_logged (const struct sweep *s, long trial)
{
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", s->dir, trial,
              sweep_trial (s, trial)->over + 1);
    return attempt_has_logged (dir);
}

static bool any_has_logged (const struct sweep *s)
{
    bool found = s->nresults > 0;

    for (long i = 1; i <= s->ntrials && i <= FAULT_LIMIT && !found; i++)
        found = trial_has_logged (s, i);
    return found;
}

int fault_let_others_begin (struct worker *w, double pause, struct slurmdl_error *err)
{
    double end = monotonic () + START_SECONDS;
    double left;

    if (!begins_after_others (w))
        return 0;
    while (!any_has_logged (w->sweep) && worker_may_go_on (w) && (left = end - monotonic ()) > 0) {
        worker_sleep (w, fmin (pause, left));
        if (sweep_sync (w->sweep, err) < 0)
            return -1;
    }
    return 0;
}

/* Whether that failure shows that all workers share the fault. */
static bool fault_pauses (struct worker *w, const struct failure_class *v)
{
    const struct fault *f = fault_like (w->sweep, v->cause, v->why);

    return f && f->count + 1 >= FAULT_LIMIT
           && (!f->host || f->spread || strcmp (f->host, w->host) || !works_elsewhere (w));
}

/* Whether the experiment is already paused because of it.  An attempt that was running then has not
 * failed: it is parked.
 */
static bool fault_is_known (const struct worker *w, const struct failure_class *v)
{
    const struct fault *f = fault_like (w->sweep, v->cause, v->why);

    return sweep_is_faulty (w->sweep) && f && f->count >= FAULT_LIMIT;
}

enum turn fault_stop (struct worker *w, struct slurmdl_error *err)
{
    const struct fault *f = fault_shared (w->sweep);
    struct event event;
    enum published rv;

    if (!f && holds_back (w))
        return TURN_WAIT;
    if (!f || (!has_other_open (w->sweep, 0) && !search_goes_on (w->sweep, 0)))
        return TURN_IDLE;
    if (f->host && !f->spread && strcmp (f->host, w->host))
        return TURN_IDLE;
    if (f->host && !f->spread && works_elsewhere (w))
        return TURN_WAIT;
    event = (struct event){ .op = EVENT_PAUSE,
                            .by = w->slot,
                            .trial = f->trial,
                            .attempt = f->attempt,
                            .cause = f->cause,
                            .why = f->why };
    if ((rv = worker_publish (w, &event, 1, err)) == PUBLISH_DONE)
        notify_fault (w->sweep);
    return rv == PUBLISH_FAILED ? TURN_FAILED : TURN_DONE;
}

/* ---- retrying after running out of memory ---- */

static void add_oom_reason (struct failure_class *v, const char *text)
{
    size_t n = strlen (v->why);
    size_t room = sizeof (v->why) - strlen (text) - 1;

    snprintf (v->why + (n < room ? n : room), strlen (text) + 1, "%s", text);
    policy_text (v->why);
}

static bool searcher_takes (const struct sweep *s, long trial, const double *x)
{
    struct searcher *copy = searcher_copy (s->searcher);
    bool takes = copy && searcher_move (copy, trial, x) == 0;

    searcher_destroy (copy);
    return takes;
}

/* "batch = 32 instead of 64" */
static void add_halved_reason (const struct hparam *h, const json_t *before,
                               struct segment_report *r)
{
    char *old = hparams_text (before, h->path);
    char *new = hparams_text (r->retry.hparams, h->path);
    char text[256];

    snprintf (text, sizeof (text), "; retried with %.100s = %.32s instead of %.32s", h->path,
              new ? new : "?", old ? old : "?");
    add_oom_reason (&r->verdict, text);
    free (old);
    free (new);
}

/* A trial that has a result keeps its point, because the result belongs to it. */
static void retry_halved (const struct sweep *s, long trial, struct segment_report *r)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    size_t n = s->exp->space->nparams;
    double *x = xcalloc (n + 1, sizeof (*x));
    const struct hparam *h;

    if (t->length > 0)
        goto none;
    if (n > 0)
        memcpy (x, t->x, n * sizeof (*x));
    if (!(h = on_oom_halve (s->exp, x)) || !searcher_takes (s, trial, x))
        goto none;
    r->retry.x = x;
    r->retry.hparams = hparams_json (s->exp, x);
    r->verdict.free = true;
    add_halved_reason (h, trial_hparams (s, t), r);
    return;
none:
    free (x);
}

static void retry_with_memory (const struct worker *w, struct segment_report *r)
{
    r->retry.memory = memory_to_retry (w, r->memory, r->peak);
    if (r->retry.memory == 0)
        return;
    memory_add_reason (r->verdict.why, sizeof (r->verdict.why), r->memory, r->retry.memory);
    r->verdict.free = true;
}

/* If the attempt ran out of memory and a retry can avoid that, fill in r->retry, add it to the
 * reason, and do not count the failure.  Call oom_retry_free() after publishing.
 */
static void oom_retry_decide (const struct worker *w, long trial, struct segment_report *r)
{
    if (r->outcome != OUTCOME_FAILED || r->verdict.last)
        return;
    if (r->verdict.oom == OOM_GPU)
        retry_halved (w->sweep, trial, r);
    else if (r->verdict.oom == OOM_HOST)
        retry_with_memory (w, r);
}

static void oom_retry_free (struct segment_report *r)
{
    free (r->retry.x);
    json_decref (r->retry.hparams);
    r->retry.x = NULL;
    r->retry.hparams = NULL;
}

/* ---- the report ---- */

/* results.h5 is rewritten after so many results, and more often while they are few.  It holds all
 * trials, so a worker spends at most one part of its time in RESULTS_REST on it.
 */
enum { RESULTS_EVERY = 256, RESULTS_REST = 50 };

/* Most nodes excluded at once; the next check finds the others. */
enum { NODES_MAX = 16 };

static struct event report_event (const struct worker *w, long trial, struct segment_report *r)
{
    static const enum event_op ops[] = { EVENT_RESULT, EVENT_FAIL, EVENT_PARK, EVENT_REJECT };
    struct event e = {
        .op = ops[r->outcome],
        .by = w->slot,
        .trial = trial,
        .attempt = sweep_trial (w->sweep, trial)->over + 1,
        .seconds = r->seconds,
        .host = w->host,
        .gpus = *w->gpus ? w->gpus : NULL,
        .why = *r->verdict.why ? r->verdict.why : NULL,
        .cause = r->verdict.cause,
        .status = r->outcome == OUTCOME_FAILED ? r->verdict.status : 0,
        .free = r->outcome == OUTCOME_FAILED && r->verdict.free,
        .progress = r->outcome == OUTCOME_FAILED && r->verdict.progress,
        .memory = r->retry.memory,
    };

    if (r->retry.x) {
        e.x = r->retry.x;
        e.nx = w->sweep->exp->space->nparams;
        e.hparams = r->retry.hparams;
    }
    if (r->outcome != OUTCOME_RESULT)
        return e;
    e.length = r->length;
    e.stopped = r->stopped;
    e.ended = r->ended;
    e.metric = r->values[0];
    if (sweep_metrics (w->sweep) > 1) {
        e.metrics = r->values;
        e.nmetrics = sweep_metrics (w->sweep);
    }
    return e;
}

/* The policy by which a job ends with this failure; REASON_NONE: none applies. */
static enum condition_reason job_end (const struct worker *w, long trial,
                                      const struct segment_report *r)
{
    const struct fault *f = fault_like (w->sweep, r->verdict.cause, r->verdict.why);
    const struct job_failure failure = { .status = r->verdict.status,
                                         .free = r->verdict.free,
                                         .progress = r->verdict.progress,
                                         .before = sweep_trial (w->sweep, trial)->tries.failed,
                                         .alike = 1 + (f ? f->count : 0) };

    return w->sweep->exp->job->is_given && r->outcome == OUTCOME_FAILED
               ? job_gives_up (w->sweep->exp, &failure)
               : REASON_NONE;
}

/* Whether the trial has no retries left, or its job ends. */
static bool gives_up (const struct worker *w, long trial, const struct segment_report *r)
{
    const struct failure_class *v = &r->verdict;
    struct tries tries = sweep_trial (w->sweep, trial)->tries;

    return job_end (w, trial, r) != REASON_NONE
           || tries_add (
               &tries,
               (struct try_end){ .last = v->last, .progress = v->progress, .free = v->free },
               w->sweep->exp->failures->max_restarts);
}

static const char *why_exclude (const struct worker *w, long trial, const struct segment_report *r)
{
    if (r->outcome != OUTCOME_FAILED)
        return NULL;
    if (r->verdict.exclude)
        return worker_is_excluded (w) ? NULL : r->verdict.why;
    return !r->verdict.free && host_spoils (w->sweep, w->host, trial)
               ? "attempts of several trials failed here in a row, while others succeed elsewhere"
               : NULL;
}

/* Add an event for each node that the attempt's check found bad. */
static size_t exclude_nodes (const struct worker *w, struct event *events, char *nodes)
{
    char *save = NULL;
    size_t n = 0;

    for (char *name = strtok_r (nodes, "\n", &save); name && n < NODES_MAX;
         name = strtok_r (NULL, "\n", &save)) {
        const struct host *h = sweep_host (w->sweep, name);
        if (word_fits (name) && (!h || !h->why))
            events[n++] = (struct event){
                .op = EVENT_EXCLUDE, .by = w->slot, .host = name, .why = "it failed its check"
            };
    }
    return n;
}

static char *bad_nodes (const struct worker *w, long trial, const struct segment_report *r)
{
    char dir[PATH_MAX];

    if (r->outcome != OUTCOME_FAILED
        || snprintf (dir, sizeof (dir), "%s/trials/%04ld/a.%ld", w->sweep->dir, trial,
                     sweep_trial (w->sweep, trial)->over + 1)
               >= (int)sizeof (dir))
        return NULL;
    return failure_bad_nodes (dir);
}

/* A trial is not given up because of a fault that trials share. */
static bool is_last (const struct worker *w, long trial, const struct segment_report *r)
{
    return r->outcome == OUTCOME_FAILED && gives_up (w, trial, r)
           && (r->verdict.free || !fault_spares_trial (w, trial, &r->verdict));
}

/* The pause goes into the same entry as the failure, so that no attempt can begin between the two.
 */
static struct event pause_event (const struct worker *w, long trial, const struct segment_report *r)
{
    return (struct event){ .op = EVENT_PAUSE,
                           .by = w->slot,
                           .trial = trial,
                           .attempt = sweep_trial (w->sweep, trial)->over + 1,
                           .cause = r->verdict.cause,
                           .why = r->verdict.why };
}

static enum published publish_failure (struct worker *w, long trial, struct segment_report *r,
                                       struct slurmdl_error *err)
{
    struct event events[4 + NODES_MAX] = { report_event (w, trial, r) };
    const char *why = why_exclude (w, trial, r);
    char *nodes = bad_nodes (w, trial, r);
    bool last = is_last (w, trial, r);
    bool pauses = r->outcome == OUTCOME_FAILED && !last && !r->verdict.free && !r->verdict.progress
                  && fault_pauses (w, &r->verdict);
    size_t n = 1;
    enum published rv;

    if (last)
        events[n++] =
            (struct event){ .op = EVENT_EXIT,
                            .by = w->slot,
                            .trial = trial,
                            .cause = r->verdict.last ? r->verdict.cause : job_end (w, trial, r) };
    if (why)
        events[n++] =
            (struct event){ .op = EVENT_EXCLUDE, .by = w->slot, .host = w->host, .why = why };
    if (nodes)
        n += exclude_nodes (w, events + n, nodes);
    if (pauses)
        events[n++] = pause_event (w, trial, r);
    rv = worker_publish (w, events, n, err);
    if (rv == PUBLISH_DONE && pauses)
        notify_fault (w->sweep);
    free (nodes);
    return rv;
}

/* results.h5 only repeats what the log and the attempts contain, so failing to write it is no
 * reason to stop.
 */
static void write_results (const struct worker *w)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/results.h5", w->sweep->dir);
    if (results_write (w->sweep, path, &err) != RESULTS_WHOLE)
        fprintf (stderr, "dl: %s\n", err.text);
}

/* Rewrite the file often while that is cheap.  Only the worker that published the result does it,
 * so that no two write the file.
 */
static void refresh_results (struct worker *w, long before)
{
    long n = w->sweep->nresults;
    double now = monotonic ();
    /* an entry may have several results: check for passing a power of two, or a multiple */
    bool due = (n ^ before) > (n & before)
               || (n / RESULTS_EVERY > before / RESULTS_EVERY
                   && now - w->results.at >= RESULTS_REST * w->results.took);

    if (due && sweep_fsync (w->sweep, NULL) == 0) {
        write_results (w);
        w->results.at = monotonic ();
        w->results.took = w->results.at - now;
    }
}

/* ---- metrics are synced before the result that summarises them ---- */

static void sync_begin (void *trainer)
{
    trainer_flush_begin (trainer);
}

static int sync_end (void *trainer, struct slurmdl_error *err)
{
    return trainer_flush_end (trainer, err);
}

static enum published publish_with_metrics (struct worker *w, const struct segment_report *r,
                                            struct event *result, struct slurmdl_error *err)
{
    const struct publish_after metrics = { sync_begin, sync_end, r->trainer };
    enum published rv;

    log_put_after (w->sweep->log, r->trainer ? &metrics : NULL);
    rv = worker_publish_result (w, result, err);
    log_put_after (w->sweep->log, NULL);
    return rv;
}

int worker_publish_report (struct worker *w, long trial, struct segment_report *r,
                           struct slurmdl_error *err)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, trial);
    long attempt = t->over + 1;
    long before = 0;
    enum published rv = PUBLISH_LATE;

    oom_retry_decide (w, trial, r);
    while (rv == PUBLISH_LATE && t->over + 1 == attempt && t->state == TRIAL_OPEN) {
        struct event event;

        if (r->outcome == OUTCOME_FAILED && fault_is_known (w, &r->verdict))
            r->outcome = OUTCOME_PARKED;
        event = report_event (w, trial, r);
        before = w->sweep->nresults;
        rv = r->outcome == OUTCOME_RESULT ? publish_with_metrics (w, r, &event, err)
                                          : publish_failure (w, trial, r, err);
        t = sweep_trial (w->sweep, trial);
    }
    offer_withdraw (w);
    oom_retry_free (r);
    if (r->outcome == OUTCOME_RESULT && rv == PUBLISH_DONE)
        refresh_results (w, before);
    return rv == PUBLISH_FAILED ? -1 : 0;
}

void worker_close_sweep (const struct worker *w)
{
    struct slurmdl_error err = { "" };
    struct gc_report report;

    write_results (w);
    if (gc_run (w->sweep, false, &report, &err) < 0)
        fprintf (stderr, "dl: %s\n", err.text);
    gc_report_free (&report);
}

/* With more workers than this, leave results.h5 to the dl command that reads it. */
enum { WORKERS_FEW = 64 };

void worker_leave_sweep (const struct worker *w)
{
    if (w->sweep->exp->resources->workers <= WORKERS_FEW && results_are_stale (w->sweep)
        && peer_count (w->sweep->dir, 0, NULL) <= 1)
        results_renew (w->sweep, NULL);
}
