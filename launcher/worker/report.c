/* SPDX-License-Identifier: Apache-2.0 */
/* Publish what came of an attempt, and keep what is made of the results. */
#include "launcher/worker/report.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep/log.h"
#include "launcher/sweep/nodes.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/results_file.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/checkpoints.h"
#include "launcher/worker/decide.h"
#include "launcher/worker/failure.h"
#include "launcher/worker/notify.h"
#include "launcher/worker/offered_results.h"
#include "launcher/worker/oom_retry.h"
#include "launcher/worker/services.h"
#include "launcher/worker/shared_fault.h"
#include "runtime/base/clock.h"

/* results.h5 is written after so many results, and while they are few; but it
 * has all trials, and a worker writes for one part of its time in so many.
 */
enum { RESULTS_EVERY = 256, RESULTS_REST = 50 };

/* Excluded at once, for one trial; more of them the next check finds. */
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
        .free = r->outcome == OUTCOME_FAILED && r->verdict.free,
        .progress = r->outcome == OUTCOME_FAILED && r->verdict.progress,
        .memory = r->retry.memory,
    };

    if (r->retry.x) {
        e.x = r->retry.x;
        e.nx = w->sweep->exp->nparams;
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

/* That failure was the trial's last. */
static bool gives_up (const struct worker *w, long trial, const struct segment_report *r)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, trial);

    if (r->verdict.last || r->verdict.progress)
        return r->verdict.last;
    return (r->verdict.free ? t->losts >= LOST_MAX : t->fails >= w->sweep->exp->max_restarts);
}

static const char *why_exclude (const struct worker *w, long trial, const struct segment_report *r)
{
    if (r->outcome != OUTCOME_FAILED)
        return NULL;
    if (r->verdict.exclude)
        return worker_is_excluded (w) ? NULL : r->verdict.why;
    return !r->verdict.free && host_spoils (w->sweep, w->host, trial)
               ? "attempts of several trials failed here in a row, while "
                 "others succeed elsewhere"
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

/* A trial whose failure is one of a shared fault is not given up. */
static bool is_last (const struct worker *w, long trial, const struct segment_report *r)
{
    return r->outcome == OUTCOME_FAILED && gives_up (w, trial, r)
           && (r->verdict.free || !fault_spares_trial (w, trial, r->verdict.why));
}

/* In the entry of the failure: no attempt can begin between the two. */
static struct event pause_event (const struct worker *w, long trial, const struct segment_report *r)
{
    return (struct event){ .op = EVENT_PAUSE,
                           .by = w->slot,
                           .trial = trial,
                           .attempt = sweep_trial (w->sweep, trial)->over + 1,
                           .why = r->verdict.why };
}

static int put_end (struct worker *w, long trial, struct segment_report *r,
                    struct slurmdl_error *err)
{
    struct event events[4 + NODES_MAX] = { report_event (w, trial, r) };
    const char *why = why_exclude (w, trial, r);
    char *nodes = bad_nodes (w, trial, r);
    bool last = is_last (w, trial, r);
    bool pauses = r->outcome == OUTCOME_FAILED && !last && !r->verdict.free && !r->verdict.progress
                  && fault_pauses (w, r->verdict.why);
    size_t n = 1;
    int rv;

    if (last)
        events[n++] = (struct event){ .op = EVENT_EXIT, .by = w->slot, .trial = trial };
    if (why)
        events[n++] =
            (struct event){ .op = EVENT_EXCLUDE, .by = w->slot, .host = w->host, .why = why };
    if (nodes)
        n += exclude_nodes (w, events + n, nodes);
    if (pauses)
        events[n++] = pause_event (w, trial, r);
    rv = worker_publish (w, events, n, err);
    if (rv == 0 && pauses)
        notify_fault (w->sweep);
    free (nodes);
    return rv;
}

/* The file is a copy: that it cannot be written is no reason to stop. */
static void write_results (const struct worker *w)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/results.h5", w->sweep->dir);
    if (results_write (w->sweep, path, &err) != 0)
        fprintf (stderr, "dl: %s\n", err.text);
}

/* Often while it is cheap: whoever puts the result decides, so that nobody
 * writes it twice.
 */
static void keep_results (struct worker *w, long before)
{
    long n = w->sweep->nresults;
    double now = monotonic ();
    /* an entry may have several results: past a power of two, or a multiple */
    bool due = (n ^ before) > (n & before)
               || (n / RESULTS_EVERY > before / RESULTS_EVERY
                   && now - w->results.at >= RESULTS_REST * w->results.took);

    if (due && sweep_settle (w->sweep, NULL) == 0) {
        write_results (w);
        w->results.at = monotonic ();
        w->results.took = w->results.at - now;
    }
}

/* ---- the metrics, which a result stands for ---- */

static void sync_begin (void *trainer)
{
    trainer_flush_begin (trainer);
}

static int sync_end (void *trainer, struct slurmdl_error *err)
{
    return trainer_flush_end (trainer, err);
}

static int publish_result (struct worker *w, const struct segment_report *r, struct event *result,
                           struct slurmdl_error *err)
{
    const struct publish_after metrics = { sync_begin, sync_end, r->trainer };
    int rv;

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
    int rv = 1;

    oom_retry_decide (w, trial, r);
    while (rv == 1 && t->over + 1 == attempt && t->state == TRIAL_OPEN) {
        struct event event;

        if (r->outcome == OUTCOME_FAILED && fault_is_known (w, r->verdict.why))
            r->outcome = OUTCOME_PARKED;
        event = report_event (w, trial, r);
        before = w->sweep->nresults;
        rv = r->outcome == OUTCOME_RESULT ? publish_result (w, r, &event, err)
                                          : put_end (w, trial, r, err);
        t = sweep_trial (w->sweep, trial);
    }
    offer_withdraw (w);
    oom_retry_free (r);
    if (r->outcome == OUTCOME_RESULT && rv == 0)
        keep_results (w, before);
    return rv < 0 ? -1 : 0;
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

/* Where there are more workers, who reads results.h5 by dl renews it. */
enum { WORKERS_FEW = 64 };

void worker_leave_sweep (const struct worker *w)
{
    if (w->sweep->exp->workers <= WORKERS_FEW && results_are_stale (w->sweep)
        && peer_count (w->sweep->dir, 0, NULL) <= 1)
        results_renew (w->sweep, NULL);
}
