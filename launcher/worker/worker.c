/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's loop: claim an open segment, else decide what comes next. */
#include "launcher/worker/worker.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/failure_settings.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/worker_settings.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker_private.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* ---- the process ---- */

/* Whether the disk has space for the result of an attempt that would begin now. */
static bool has_space (struct worker *w)
{
    if (w->waits && disk_reserve_make (w->sweep->dir, NULL) == 0) {
        fputs ("dl: there is space again\n", stderr);
        w->waits = false;
    }
    return !w->waits;
}

/* ---- one attempt ---- */

/* The owner of a job follows it on its terminal or in the output of its batch script. */
static void note_failed_attempt (const struct worker *w, long attempt,
                                 const struct segment_report *r)
{
    if (w->sweep->exp->job->is_given && r->outcome == OUTCOME_FAILED)
        fprintf (stderr, "dl: attempt %ld failed: %s\n", attempt, r->verdict.why);
}

static int train_trial (struct worker *w, long trial, struct slurmdl_error *err)
{
    long attempt = sweep_trial (w->sweep, trial)->over + 1;
    struct segment_report r;
    int rv;

    rv = segment_run (w, trial, &r, err);
    trial_forget_hparams (sweep_trial (w->sweep, trial));
    if (rv < 0)
        return -1;
    w->fresh = false;
    if (r.outcome == OUTCOME_FAILED && r.verdict.error)
        w->waits = true;
    rv = r.outcome == OUTCOME_DROPPED ? 0 : worker_publish_report (w, trial, &r, err);
    if (rv == 0)
        note_failed_attempt (w, attempt, &r);
    segment_end (&r);
    if (rv == 0 && r.outcome != OUTCOME_DROPPED)
        notify_attempt (w->sweep, trial, attempt);
    return rv;
}

/* ---- finding work ---- */

/* Seconds a peer gets to report why a worker died. */
enum { ASK_WAIT = 25 };

/* Several workers may notice the same death; only one asks Slurm about it. */
enum question_claim { QUESTION_MINE, QUESTION_OF_ANOTHER, QUESTION_FAILED };
static enum question_claim claim_question (const struct worker *w, long trial)
{
    char path[PATH_MAX];
    int rv;

    snprintf (path, sizeof (path), "%.3900s/trials/%04ld", w->sweep->dir, trial);
    if (folder_create (path, NULL) < 0)
        return QUESTION_FAILED;
    snprintf (path, sizeof (path), "%.3900s/trials/%04ld/asked.%ld", w->sweep->dir, trial,
              sweep_trial (w->sweep, trial)->over + 1);
    rv = publish_if_absent (path, w->slot, strlen (w->slot), NULL);
    return rv == LINK_FAILED  ? QUESTION_FAILED
           : rv == LINK_TAKEN ? QUESTION_OF_ANOTHER
                              : QUESTION_MINE;
}

/* Find out why the worker 'owner' died.  Returns false while another worker is asking Slurm about
 * it.
 */
static bool find_cause_of_death (struct worker *w, long trial, const char *owner,
                                 struct worker_exit *l)
{
    const struct worker_exit *mine = peer_preceded (w->peer, owner) ? w->lost : NULL;
    char slot[64];
    enum question_claim q;

    *l = (struct worker_exit){ .why = "its worker is gone" };
    if (mine && *mine->why)
        *l = *mine;
    /* Slurm knows no more about a job that still runs */
    if ((mine && !mine->requeued) || peer_slot (w->peer, owner, slot, sizeof (slot)) < 0
        || !worker_exit_can_ask (slot))
        return true;
    if ((q = claim_question (w, trial)) == QUESTION_MINE)
        worker_exit_ask (slot, l);
    return q != QUESTION_OF_ANOTHER || peer_dead_since (w->peer, owner) >= ASK_WAIT;
}

/* Remove the spare metrics file of a dead worker.  If the worker only hangs, it continues without
 * one.
 */
static void remove_spare_metrics (const struct worker *w, const char *owner)
{
    char name[40];
    char path[PATH_MAX];

    snprintf (name, sizeof (name), ".%s", owner);
    if (inside_is_hidden (name)
        && snprintf (path, sizeof (path), "%s/workers/%s", w->sweep->dir, name)
               < (int)sizeof (path))
        inside_unlink (path, 0);
}

/* Record that the worker of this attempt is gone.  Running out of memory counts
 * against the trial, not against the node.
 */
static enum turn publish_lost (struct worker *w, long trial, const char *owner,
                               struct slurmdl_error *err)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, trial);
    long attempt = t->over + 1;
    int64_t had = memory_of_attempt (w);
    struct worker_exit lost;
    int64_t memory;
    struct try_end end = { .last = false };
    struct tries tries = t->tries;
    bool last, counted;

    if (!find_cause_of_death (w, trial, owner, &lost))
        return TURN_WAIT;
    counted = lost.cause == REASON_OUT_OF_MEMORY;
    memory = counted ? memory_to_retry (w, had, 0) : 0;
    if (memory)
        memory_add_reason (lost.why, sizeof (lost.why), had, memory);
    end.free = !counted || memory > 0;
    end.progress = attempt_progress (w->sweep, trial, attempt) == PROGRESS_STEPS;
    last = tries_add (&tries, end, w->sweep->exp->failures->max_restarts);
    struct event events[2] = {
        { .op = counted ? EVENT_FAIL : EVENT_LOST,
          .by = w->slot,
          .trial = trial,
          .attempt = attempt,
          .seconds = attempt_seconds (w->sweep, trial, attempt, owner),
          .free = memory > 0,
          .progress = end.progress,
          .memory = memory,
          .cause = lost.cause,
          .why = lost.why },
        { .op = EVENT_EXIT, .by = w->slot, .trial = trial },
    };

    remove_spare_metrics (w, owner);
    leftovers_clean_attempt (w->sweep, trial, attempt);
    return worker_publish (w, events, last ? 2 : 1, err) == PUBLISH_FAILED ? TURN_FAILED
                                                                           : TURN_AGAIN;
}

/* Returns TURN_DONE if this worker has the trial now. */
static enum turn claim_trial (struct worker *w, long trial, struct slurmdl_error *err)
{
    const struct sweep_trial *t = sweep_trial (w->sweep, trial);

    if (!memory_fits (w))
        return TURN_WAIT;
    if (!time_fits (w, trial, t->target)) {
        w->out_of_time = true;
        return TURN_WAIT;
    }
    switch (peer_claim (w->peer, trial, t->over + 1, t->target, err)) {
    case CLAIM_OURS:
        return TURN_DONE;
    case CLAIM_TAKEN:
        return TURN_WAIT;
    case CLAIM_FAILED:
        break;
    }
    return TURN_FAILED;
}

/* The host of this worker did not answer for a while, so that Slurm started the job elsewhere. */
static enum turn leave_slot (struct worker *w)
{
    w->left_over = true;
    fputs ("dl: Slurm has started the job of this worker again; this worker ends\n", stderr);
    return TURN_AGAIN;
}

/* Seconds between two questions to Slurm. */
enum { ASK_EVERY_SECONDS = 30 };

/* The worker of a job has nothing else to do, and its nodes would be idle for the whole lease, so
 * ask Slurm whether the worker that has the only trial was cancelled.
 */
static bool owner_was_cancelled (struct worker *w, const char *owner)
{
    char slot[64];

    if (!w->sweep->exp->job->is_given)
        return false;
    if (w->waited <= 0)
        w->waited = monotonic ();
    if (monotonic () - w->waited < ASK_EVERY_SECONDS)
        return false;
    w->waited = monotonic ();
    return peer_slot (w->peer, owner, slot, sizeof (slot)) == 0 && worker_exit_is_over (slot);
}

/* Returns TURN_DONE if this worker has the trial, TURN_WAIT if it cannot get it. */
static enum turn try_trial (struct worker *w, long trial, struct slurmdl_error *err)
{
    const char *owner;
    bool dead;

    if (!(owner = worker_owner_of (w, trial)))
        return claim_trial (w, trial, err);
    if (!strcmp (owner, worker_nonce (w)))
        return TURN_DONE;
    dead = w->polls && peer_dead (w->peer, owner, w->sweep->exp->worker->lease);
    if (peer_follows (w->peer, owner))
        return leave_slot (w);
    if (!dead && !(w->polls && owner_was_cancelled (w, owner)))
        return TURN_WAIT;
    return publish_lost (w, trial, owner, err);
}

/* Each worker starts at a different index of s->open, so that two rarely try the same trial. */
static long first_index (const struct worker *w)
{
    unsigned long hash = 5381;

    for (const char *c = worker_nonce (w); *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    return w->sweep->nopen ? (long)(hash % (unsigned long)w->sweep->nopen) : 0;
}

/* Poll for dead workers only once a second: with many workers it takes longer than everything else.
 */
static bool is_poll_due (struct worker *w)
{
    if (monotonic () - w->polled < 1)
        return false;
    w->polled = monotonic ();
    return true;
}

/* Return the trial that this worker began for itself and that nobody else may train, or 0. */
static long own_trial (const struct worker *w)
{
    for (long i = 0; i < w->sweep->nopen; i++) {
        long trial = w->sweep->open[i];
        const char *owner = sweep_trial (w->sweep, trial)->owner;
        if (owner && !strcmp (owner, worker_nonce (w)))
            return trial;
    }
    return 0;
}

/* Train an open segment. */
static enum turn train_open_trial (struct worker *w, struct slurmdl_error *err)
{
    long n = w->sweep->nopen;
    long first = first_index (w);
    long own = own_trial (w);

    if (own)
        return train_trial (w, own, err) < 0 ? TURN_FAILED : TURN_DONE;
    w->polls = is_poll_due (w);
    for (long i = 0; i < n; i++) {
        long trial = w->sweep->open[(first + i) % n];
        enum turn turn = try_trial (w, trial, err);
        if (turn == TURN_DONE)
            return train_trial (w, trial, err) < 0 ? TURN_FAILED : TURN_DONE;
        if (turn != TURN_WAIT)
            return turn;
    }
    return TURN_IDLE;
}

/* ---- the loop ---- */

static enum turn do_next (struct worker *w, struct slurmdl_error *err)
{
    enum turn turn;

    w->out_of_time = false;
    if (!worker_may_go_on (w) || !has_space (w))
        return TURN_IDLE;
    if (w->sweep->reached)
        return worker_finish (w, err);
    if ((turn = fault_stop (w, err)) != TURN_IDLE)
        return turn;
    if (worker_time_is_over (w))
        return worker_wind_up (w, err);
    if ((turn = train_open_trial (w, err)) != TURN_IDLE || !worker_may_go_on (w))
        return turn;
    return worker_decide (w, err);
}

/* A full disk does not end a worker: it keeps its claims and waits for space. */
static enum turn try_next (struct worker *w, struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    enum turn turn = do_next (w, &why);

    if (turn != TURN_FAILED)
        return turn;
    if (!disk_is_full (errno) || w->stop) {
        errorf (err, "%s", why.text);
        return TURN_FAILED;
    }
    worker_note_full_disk (w, &why);
    return TURN_WAIT;
}

/* Idle workers together read the log about 300 times a second. */
static double least_pause (const struct worker *w)
{
    double pause = (double)w->sweep->exp->resources->workers / 320;

    return fmin (fmax (pause, 0.05), 2);
}

static int run_loop (struct worker *w, struct slurmdl_error *err)
{
    double pause = least_pause (w);
    bool fresh = false; /* this worker wrote the last entry: there is nothing to read */

    if (fault_let_others_begin (w, pause, err) < 0)
        return -1;
    while (worker_may_go_on (w)) {
        int news = fresh ? 0 : sweep_sync (w->sweep, err);
        enum turn turn = news < 0 ? TURN_FAILED : try_next (w, err);
        bool did = turn == TURN_DONE || turn == TURN_AGAIN;
        if (turn == TURN_FAILED)
            return -1;
        fresh = did && log_is_mine (w->sweep->log);
        if (news > 0 || did)
            pause = least_pause (w);
        if (did)
            continue;
        if (w->out_of_time)
            break;
        if (sweep_fsync (w->sweep, err) < 0)
            return -1;
        if (worker_may_go_on (w)) {
            worker_sleep (w, pause);
            pause = pause < 2 ? pause * 1.5 : 2;
        }
        if (worker_tick (w, err) < 0)
            return -1;
    }
    return sweep_fsync (w->sweep, err);
}

static enum worker_end how_it_ended (const struct worker *w)
{
    if (sweep_is_faulty (w->sweep)) {
        fprintf (stderr, "dl: %s is paused: %.400s\n", w->sweep->dir, w->sweep->cause.why);
        return WORKER_FAULT;
    }
    if (w->left_over || w->sweep->state != SWEEP_RUNNING || sweep_retires (w->sweep, w->slot))
        return WORKER_DONE;
    if (worker_is_excluded (w))
        return WORKER_EXCLUDED;
    if (w->memory.leaves && !w->stop)
        return w->memory.too_small ? WORKER_SMALL : WORKER_DONE;
    return w->stop == SIGTERM ? WORKER_PREEMPTED : WORKER_PARKED;
}

/* The name tells the worker that takes over which dead worker the file belongs to. */
static bool name_spare_metrics (struct worker *w)
{
    snprintf (w->spare.name, sizeof (w->spare.name), ".%s", worker_nonce (w));
    return snprintf (w->spare.dir, sizeof (w->spare.dir), "%s/workers", w->sweep->dir)
           < (int)sizeof (w->spare.dir);
}

enum worker_end worker_run (struct sweep *sweep, const struct worker_place *place,
                            struct slurmdl_error *err)
{
    struct worker w = { .sweep = sweep,
                        .slot = place->slot,
                        .fresh = place->fresh,
                        .lost = place->lost,
                        .signals = -1 };
    enum worker_end end = WORKER_ERROR;
    int e;

    if (worker_begin (&w, err) < 0)
        return end;
    log_socket_open (&w.socket);
    if (place->seconds > 0)
        w.end = w.beat + place->seconds;
    if (software_enter (sweep->exp, err) == 0 && (w.peer = peer_create (sweep->dir, w.slot, err))
        && name_spare_metrics (&w) && run_loop (&w, err) == 0)
        end = how_it_ended (&w);
    if (end == WORKER_ERROR)
        sweep_blame_folder (sweep, err);
    if (w.closes) {
        worker_close_sweep (&w);
        notify_end (w.sweep);
    } else if (w.peer) {
        worker_leave_sweep (&w);
        if (w.sweep->state == SWEEP_STOPPED || w.sweep->state == SWEEP_KILLED)
            notify_end (w.sweep);
    }
    e = errno;
    trainer_forget_spare (&w.spare);
    if (*w.spare_work)
        remove_tree (w.spare_work);
    custom_close (&w);
    peer_destroy (w.peer);
    log_socket_close (&w.socket);
    close (w.signals);
    errno = e;
    return end;
}
