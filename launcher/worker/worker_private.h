/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a worker, and the interfaces between the parts of its loop. */
#pragma once

#include <jansson.h>

#include "launcher/heal/heal.h"
#include "launcher/sweep/attempt.h"
#include "launcher/sweep/event.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/comm/net/notice.h"
#include "searcher/searcher.h"

struct peer_membership;
struct custom_searcher;

/* ---- the worker (worker_state.c) ---- */

/* Most lost nodes that a worker remembers. */
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
    int stop;                       /* signal that asked the worker to stop; 0: none */
    double beat;                    /* time of the last heartbeat */
    double polled;                  /* time of the last poll for dead workers */
    bool polls;                     /* this turn polls for dead workers */
    double waited;                  /* when it last asked Slurm about the owner; 0: never */
    double end;                     /* when Slurm kills it, by the same clock; 0: never */
    bool timed_out;                 /* it stops because that time is near */
    bool fresh;                     /* as in struct worker_place */
    const struct worker_exit *lost; /* the same */
    bool left_over;                 /* its job has ended, or runs again elsewhere */
    long idle;                      /* minutes without work on its step's GPUs; 0: not idle */
    bool out_of_time;               /* the open segments take longer than the time left */
    bool waits;                     /* has reported that it waits for disk space */
    bool rivals;                    /* its last results raced with those of other workers */
    bool offers;                    /* it offers the present result to them */
    int held;                       /* waits to see whether a fault reaches this count */
    double held_until;              /* end of that wait */
    struct job_memory memory;
    struct lost_node {
        char name[64];
        bool is_taken;        /* Slurm has taken it from the job, for good */
    } lost_nodes[LOST_NODES]; /* nodes of this allocation that did not answer; if the worker has no
                                 log, also those that failed a check */
    int nlost;
    bool is_alone;    /* its host reached no other node: it gives up the allocation */
    double tolerated; /* seconds without progress to tolerate, raised after ending an attempt for a
                         hang turned out to be useless */
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
    TURN_IDLE,        /* nothing to do now */
    TURN_DONE,        /* this worker did something, or another worker has published it */
    TURN_AGAIN,       /* the state has changed: start over */
    TURN_WAIT         /* there is work, but this worker must not do it */
};

/* Watch the signals, and find out about the node, its GPUs and its memory.  Returns -1 with 'err'.
 */
int worker_begin (struct worker *w, struct slurmdl_error *err);

/* Read a pending signal.  Returns 0 if there is none.  Records a request to stop in w->stop. */
int worker_signal (struct worker *w);

/* Write a heartbeat and read the log, if either is due. */
int worker_tick (struct worker *w, struct slurmdl_error *err);

/* Sleep until a signal arrives, but at most 'seconds'. */
void worker_sleep (struct worker *w, double seconds);

/* The unique name of this worker in claims and results. */
const char *worker_nonce (const struct worker *w);

/* Whether this worker has fewer usable nodes than an attempt needs, so that none may begin. */
bool worker_is_excluded (const struct worker *w);

/* The nodes "n1,n2" for the next attempt with several ranks.  Sets '*n' to their number, and '*all'
 * if they are the whole allocation.  The caller frees the text.  Returns NULL if there is no
 * allocation.
 */
char *worker_good_nodes (const struct worker *w, long *n, bool *all);

/* Record that a node did not answer.  Returns whether that is new.  worker_find_node() records that
 * the node, by its index in lost_nodes, answers again.
 */
bool worker_lose_node (struct worker *w, const char *name);

/* Record that Slurm has taken a node from the job.  Returns whether that is new. */
bool worker_take_node (struct worker *w, const char *name);

/* Start no more attempts on the node: record the reason in the experiment's log, or, if the worker
 * runs a command that has no log, remember the node.
 */
void worker_exclude_node (struct worker *w, const char *name, const char *why);
void worker_find_node (struct worker *w, int lost);

/* Whether the worker may continue open work, and whether it may begin new work. */
bool worker_may_go_on (const struct worker *w);
bool worker_may_begin (const struct worker *w);

/* Whether searcher.max_hours have passed, by the log or by this machine's clock.  The clocks of
 * nodes may differ: the first worker to publish the event decides for all.
 */
bool worker_time_is_over (const struct worker *w);

/* The nonce of the worker that has claimed the trial's next attempt, or NULL. */
const char *worker_owner_of (struct worker *w, long trial);

/* Whether another live worker has claimed the trial's next attempt. */
bool worker_trains (struct worker *w, long trial);

/* Like sweep_publish(), but while the disk is full, wait and retry until asked to stop. */
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
    OUTCOME_DROPPED,  /* another worker has taken over the trial */
};

struct segment_report {
    enum segment_outcome outcome;
    int64_t length;
    bool stopped;  /* by the searcher, before the segment's end */
    int64_t ended; /* step before that end at which the trainer ended by itself, or 0 */
    double values[OBJECTIVES_MAX];
    double seconds;
    struct failure_class verdict; /* if it failed */
    int64_t memory, peak;         /* bytes available, and measured peak; 0: unknown */
    struct trainer *trainer; /* its metrics need an fsync with the result; NULL: already done */
    struct {
        int64_t memory;  /* 0: the same */
        double *x;       /* NULL: the same point, else all parameters */
        json_t *hparams; /* the hyperparameters at 'x' */
    } retry;             /* changes for the next attempt */
};

/* Release the report with segment_end(). */
int segment_run (struct worker *w, long trial, struct segment_report *report,
                 struct slurmdl_error *err);
void segment_end (struct segment_report *report);

/* ---- what to do next (decide.c) ---- */

/* Begin segments or end the sweep, as the searcher decides. */
enum turn worker_decide (struct worker *w, struct slurmdl_error *err);

/* Publish a result, and what this worker does next, as one entry.  Returns as worker_publish(). */
enum published worker_publish_result (struct worker *w, struct event *result,
                                      struct slurmdl_error *err);

/* What to do once searcher.goal is reached, or once searcher.max_hours have passed. */
enum turn worker_finish (struct worker *w, struct slurmdl_error *err);
enum turn worker_wind_up (struct worker *w, struct slurmdl_error *err);

/* Only one worker can append each log entry.  If many results arrive at once, a worker that lost
 * the race leaves its result in workers/NONCE.offer; the next winner adds all offers, and what
 * their workers do next, to its entry.  Offers are not part of the state: no result is lost or
 * duplicated if an offer is overlooked, read late or removed.  A checksum protects against
 * incomplete offers.
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

/* Collect the offered results that the log would accept now: one per trial, none of 'trial'.  Their
 * metrics are already on disk.
 */
void offers_collect (struct worker *w, long trial, struct offers *o);
void offers_free (struct offers *o);

/* Offer the first event, a result, of an entry that lost the race.  The second event is what the
 * worker would have begun next.  Ignores failures.
 */
void offer_put (struct worker *w, const struct event *events);

/* Withdraw the offer once the result is in the log or never will be. */
void offer_withdraw (struct worker *w);

/* ---- the searcher "custom", a program of the user (custom_searcher.c) ---- */

/* Ask the program for the next trial's point.  Starts the program if necessary, and first sends it
 * what is new in the sweep.  Meanwhile writes heartbeats and reads the log.  Gives up with
 * SEARCH_WAIT when the worker is asked to stop.
 *
 * Returns 0 with '*answer', or -1 with 'err'.
 */
int custom_ask (struct worker *w, double *x, enum search_answer *answer, struct slurmdl_error *err);

/* Whether another worker has begun that point since the program was asked. */
bool custom_is_taken (const struct worker *w, const double *x);
void custom_close (struct worker *w);

/* ---- reporting how an attempt ended (report.c) ---- */

/* Publish the report, unless the attempt has been fenced meanwhile. */
int worker_publish_report (struct worker *w, long trial, struct segment_report *r,
                           struct slurmdl_error *err);

/* After the last attempt, write results.h5 and remove the checkpoints that the policy drops. */
void worker_close_sweep (const struct worker *w);

/* Call this when a worker leaves before the end.  Writes results.h5 if no other worker is left. */
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

/* ---- watch an attempt with several ranks, and recover in its allocation (heal.c) ---- */

struct trainer;

/* What the worker does about a step that seems to be in trouble. */
enum heal_phase {
    HEAL_WATCHES, /* nothing is wrong so far */
    HEAL_STACKS,  /* wait for the ranks to dump their stacks */
    HEAL_DOUBTS,  /* wait to see whether the ranks make progress after all */
    HEAL_AGAIN,   /* wait for a second dump of the stacks */
    HEAL_ENDS,    /* give the ranks a moment to exit by themselves */
    HEAL_WAITS,   /* wait for srun to exit */
};

/* Whether Slurm can start steps on nodes that are not suspect. */
enum heal_steps { STEPS_UNKNOWN, STEPS_START, STEPS_FAIL };

struct heal {
    struct rank_watch *watch; /* NULL: the ranks are not watched */
    struct slow_ranks *slow;  /* NULL: the same */
    char notice[NOTICE_NAME];
    struct heal_limits limits;
    struct heal_learned learned;
    struct heal_verdict verdict;
    enum heal_phase phase;
    double until; /* end of the phase */
    bool left;    /* srun was killed */
    long dumps;   /* number of stack dumps so far */
    double start, output;
    double ticked;     /* when heal_tick() was last called; 0: never */
    long long printed; /* bytes in the log */
    struct first_failure first;
    struct timespec logged; /* when metrics.h5 last changed; 0: it does not exist */
    bool warned;
    struct slurmdl_error blind; /* why the ranks are not watched, or "" */
    enum heal_steps steps;      /* found out when the first check cannot be run */
    char *nodes;                /* nodes of the attempt; NULL: unknown */
    char notes[HEALING_MOST];   /* lines, as in the attempt's folder */
};

/* Choose the nodes of an attempt, and listen for its ranks, which learn the address from a->ranks,
 * until heal_end().  The attempt's folder need not exist yet.
 */
void heal_begin (struct heal *h, struct worker *w, struct trial_attempt *a);

/* Once the attempt's folder exists. */
void heal_started (struct heal *h, const struct trial_attempt *a, struct trainer *t);

/* Write one line per event to the worker's output, to the attempt's log, and to the attempt's
 * folder, from which dl show and dl watch read it.
 */
void heal_note (struct heal *h, const struct trial_attempt *a, struct trainer *t,
                const char *format, ...) __attribute__ ((format (printf, 4, 5)));

/* Only answer the ranks.  A rank that connects waits for the answer, and meanwhile passes on no
 * signal to its program.
 */
void heal_serve (struct heal *h);

/* Check on the ranks, and end the step if something is wrong with it. */
void heal_tick (struct heal *h, const struct trial_attempt *a, struct trainer *t);

/* The wait status of the step: that of srun, or of the rank that ended first. */
int heal_status (const struct heal *h, int status);

/* Add to 'v' what is known about why the attempt failed. */
void heal_explain (const struct heal *h, struct failure_class *v);

/* The attempt is over: check the suspect node, or one on which no rank ran, and exclude it if it is
 * bad.  'v' is the verdict on a failed attempt, else NULL.
 */
void heal_end (struct heal *h, struct worker *w, const struct trial_attempt *a,
               struct failure_class *v);
