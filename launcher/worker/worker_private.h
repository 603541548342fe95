/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a worker, and what the parts of its loop offer each other. */
#pragma once

#include <jansson.h>

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/event.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trainer/log_socket.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/allocation.h"
#include "launcher/worker/failure.h"
#include "launcher/worker/lost_worker.h"
#include "searcher/searcher.h"

struct peer_membership;
struct custom_searcher;

/* ---- the worker (worker_state.c) ---- */

/* Nodes that an allocation may lose. */
enum { LOST_NODES = 16 };

struct worker {
    struct sweep *sweep;
    const char *slot;
    char host[65];
    char gpus[256];
    struct peer_membership *peer;
    struct custom_searcher *custom; /* NULL: not started */
    int signals;                    /* signalfd */
    struct log_socket socket;
    int stop;                       /* signal that asked it to stop, 0: none */
    double beat;                    /* time of the last heartbeat */
    double looked;                  /* time of the last check for dead workers */
    bool looks;                     /* this turn checks for them */
    double end;                     /* when Slurm kills it by the same clock, 0: never */
    bool fresh;                     /* as in struct worker_place */
    const struct worker_exit *lost; /* the same */
    bool left_over;                 /* its job has ended */
    bool out_of_time;               /* what is open takes longer than the time left */
    bool waits;                     /* for space on the disk; reported */
    bool rivals;                    /* its last results raced with those of others ... */
    bool offers;                    /* ... and it offers them this one */
    int held;                       /* waits to see whether a fault reaches this count ... */
    double held_until;              /* ... until then */
    struct job_memory memory;
    char lost_nodes[LOST_NODES][64]; /* that did not answer, of this allocation */
    int nlost;
    double tolerated; /* s without progress, after an attempt that was ended for that in vain */
    struct {
        double at, took; /* when it last wrote results.h5, and how long that took */
    } results;
    struct trainer_spare spare;
    char spare_work[SPARE_SIZE]; /* a spare working folder, or "" */
    bool closes;                 /* it published the end and has to clean up */
};

/* The outcome of a turn of the worker's loop, or of a part of it. */
enum turn {
    TURN_FAILED = -1, /* errno says why */
    TURN_IDLE,        /* there is nothing to do now */
    TURN_DONE,        /* something was done, or another worker has published it */
    TURN_AGAIN,       /* the state has changed: start over */
    TURN_WAIT         /* there is work that this worker must leave alone */
};

/* A trial whose workers die this often at one segment without a known cause (the OOM killer, say)
 * takes the sweep down no further.
 */
enum { LOST_MAX = 20 };

/* Read a pending signal; returns 0 if there is none.  A request to stop is noted in w->stop. */
int worker_signal (struct worker *w);

/* Write a heartbeat and read the log, if it is time. */
int worker_tick (struct worker *w, struct slurmdl_error *err);

/* Sleep until a signal arrives, at most so long. */
void worker_sleep (struct worker *w, double seconds);

/* The unique name of this worker in claims and results. */
const char *worker_nonce (const struct worker *w);

/* Whether no attempt may begin on this worker's nodes: fewer than an attempt needs are left. */
bool worker_is_excluded (const struct worker *w);

/* The nodes of the next attempt of several ranks, "n1,n2", how many, and whether that is the whole
 * allocation; the caller frees it.  NULL: there is no allocation.
 */
char *worker_good_nodes (const struct worker *w, long *n, bool *all);

/* Note that this node did not answer, and whether that is new; or that it does again. */
bool worker_lose_node (struct worker *w, const char *name);
void worker_find_node (struct worker *w, int lost);

/* Whether it may go on with what is open; whether it may begin something new. */
bool worker_may_go_on (const struct worker *w);
bool worker_may_begin (const struct worker *w);

/* Whether searcher.max_hours are over, by the log or by this machine's clock.  Clocks need not
 * agree: the first worker to publish the event decides for all.
 */
bool worker_time_is_over (const struct worker *w);

/* The nonce of the worker that has claimed the trial's next attempt; NULL: nobody. */
const char *worker_owner_of (struct worker *w, long trial);

/* Whether another live worker has claimed the trial's next attempt. */
bool worker_trains (struct worker *w, long trial);

/* As sweep_publish(), but while the disk is full it waits and retries until asked to stop. */
enum published worker_publish (struct worker *w, struct event *events, size_t n,
                               struct slurmdl_error *err);

/* Report once that the worker waits for space on the disk. */
void worker_note_full_disk (struct worker *w, const struct slurmdl_error *why);

/* ---- one attempt at a segment (segment.c) ---- */

enum segment_outcome {
    OUTCOME_RESULT,   /* the metric at the segment's end */
    OUTCOME_FAILED,   /* counts towards max_restarts */
    OUTCOME_PARKED,   /* stopped on request before the end */
    OUTCOME_REJECTED, /* the trainer rejected the point */
    OUTCOME_DROPPED,  /* another worker has the trial now */
};

struct segment_report {
    enum segment_outcome outcome;
    int64_t length;
    bool stopped;  /* by the searcher, before the segment's end */
    int64_t ended; /* the step before it at which the trainer ended by itself, or 0 */
    double values[OBJECTIVES_MAX];
    double seconds;
    struct failure_class verdict; /* of a failure */
    int64_t memory, peak;         /* bytes that it had, and was seen to use; 0: unknown */
    struct trainer *trainer;      /* its metrics must be synced with the result; NULL: they are */
    struct {
        int64_t memory;  /* 0: the same */
        double *x;       /* NULL: the same point, else all parameters */
        json_t *hparams; /* of x */
    } retry;             /* what the next attempt gets instead */
};

/* Release the report with segment_end(). */
int segment_run (struct worker *w, long trial, struct segment_report *report,
                 struct slurmdl_error *err);
void segment_end (struct segment_report *report);

/* ---- what comes next (decide.c) ---- */

/* Begin segments, or end the sweep, as the searcher decides. */
enum turn worker_decide (struct worker *w, struct slurmdl_error *err);

/* Publish a result, and what this worker does next, as one entry; returns as worker_publish(). */
enum published worker_publish_result (struct worker *w, struct event *result,
                                      struct slurmdl_error *err);

/* What to do instead once searcher.goal is reached, or searcher.max_hours are over. */
enum turn worker_finish (struct worker *w, struct slurmdl_error *err);
enum turn worker_wind_up (struct worker *w, struct slurmdl_error *err);

/* Each log entry has one winner.  If many results come at once, a worker that lost the race leaves
 * its result in workers/NONCE.offer, and the next winner adds all offers, and what their workers do
 * next, to its entry.  An offer is not part of the state: nothing is lost or doubled if nobody sees
 * it, sees it late or removes it.  A checksum shows whether it is complete.
 */
enum { OFFERS_MAX = 15 };

struct offer {
    char nonce[33];      /* of the worker that claimed the attempt */
    int64_t length;      /* of the longest segment that it would begin next */
    struct event result; /* its texts are valid until offers_free() */
    json_t *json;
};

struct offers {
    struct offer list[OFFERS_MAX];
    size_t n;
};

/* Collect the results that other workers offer and the log would accept now, one a trial, but none
 * of 'trial'.  Their metrics are on disk.
 */
void offers_collect (struct worker *w, long trial, struct offers *o);
void offers_free (struct offers *o);

/* Offer the first event, a result, of an entry that came too late; the second is what the worker
 * would have begun.  Ignores failures.
 */
void offer_put (struct worker *w, const struct event *events);

/* Withdraw it, once the result is in the log or will never be. */
void offer_withdraw (struct worker *w);

/* ---- the searcher "custom", a program of the user (custom_searcher.c) ---- */

/* Ask the program for the next trial's point, starting it if need be and reporting what is new in
 * the sweep.  Meanwhile writes heartbeats and reads the log; gives up with SEARCH_WAIT when the
 * worker is asked to stop.
 *
 * Returns 0 with '*answer', or -1.
 */
int custom_ask (struct worker *w, double *x, enum search_answer *answer, struct slurmdl_error *err);

/* Whether another worker began that point after the program was asked. */
bool custom_is_taken (const struct worker *w, const double *x);
void custom_close (struct worker *w);

/* ---- reporting how an attempt ended (report.c) ---- */

/* Publish it; nothing if the attempt was fenced meanwhile. */
int worker_publish_report (struct worker *w, long trial, struct segment_report *r,
                           struct slurmdl_error *err);

/* After the last attempt: write results.h5 and remove the checkpoints that the policy drops. */
void worker_close_sweep (const struct worker *w);

/* The same for a worker that another one should have relieved of it: write results.h5 if nobody
 * else is there.
 */
void worker_leave_sweep (const struct worker *w);

/* Let the first three workers begin alone until an attempt of the experiment has logged a metric,
 * for at most 3 s; the others check every 'pause' s.  Returns 0, or -1 on failure.
 */
int fault_let_others_begin (struct worker *w, double pause, struct slurmdl_error *err);

/* Pause the experiment if all attempts fail in the same way.  As long as only one node has shown
 * the fault and workers run elsewhere, that node's workers only wait.
 *
 * Returns TURN_IDLE if work may begin, TURN_DONE if the experiment is paused, TURN_WAIT or
 * TURN_FAILED.
 */
enum turn fault_stop (struct worker *w, struct slurmdl_error *err);
