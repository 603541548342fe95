/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: pulls segments of a sweep and trains them until none is left. */
#ifndef LAUNCHER_WORKER_WORKER_H
#define LAUNCHER_WORKER_WORKER_H

#include "launcher/sweep/sweep.h"
#include "launcher/worker/failure.h"
#include "launcher/worker/lost_worker.h"

/* How a worker ended; also its exit status (launcher/exits.h). */
enum worker_end {
    WORKER_DONE,      /* the sweep has ended or was stopped */
    WORKER_PARKED,    /* it was told to go; there is work left */
    WORKER_PREEMPTED, /* the same, by SIGTERM: Slurm is about to kill it */
    WORKER_EXCLUDED,  /* no attempt may begin on this machine */
    WORKER_ERROR,
};

/* How a worker works. */
struct worker_place {
    const char *slot;
    double seconds; /* that it has before Slurm kills it, 0: no limit */
    bool fresh;     /* it has just got them: more are not to be had */
    const struct lost *lost; /* of who was here before; NULL: nothing */
};

/* Work in 'sweep' at 'place'.  Blocks SIGTERM, SIGUSR2, SIGINT and SIGCHLD in
 * the calling thread and takes them as requests (dl(1), SIGNALS).
 */
enum worker_end worker_run (struct sweep *sweep,
                            const struct worker_place *place,
                            struct slurmdl_error *err);

/* ---- one attempt (segment.c) ---- */

struct worker;

enum outcome {
    OUTCOME_RESULT,   /* the metric at the segment's end */
    OUTCOME_FAILED,   /* counts towards max_restarts */
    OUTCOME_PARKED,   /* stopped on request before the end */
    OUTCOME_REJECTED, /* its trainer says that the point makes no sense */
    OUTCOME_DROPPED,  /* another worker has the trial now */
};

struct report {
    enum outcome outcome;
    int64_t length;
    bool stopped; /* by the searcher, before the segment's end */
    double values[OBJECTIVES_MAX];
    double seconds;
    struct verdict verdict; /* of a failure */
};

int segment_run (struct worker *w,
                 long trial,
                 struct report *report,
                 struct slurmdl_error *err);

/* What the parts of the worker share. */
struct peer;
struct custom;
struct worker {
    struct sweep *sweep;
    const char *slot;
    char host[65];
    char gpus[256];
    struct peer *peer;
    struct custom *custom; /* NULL: not started */
    int signals;           /* signalfd */
    int socket;            /* of `dl log`, -1: none */
    int socket_lock;       /* on its folder, -1: none */
    char socket_dir[64];
    char socket_path[80];
    int stop;      /* signal that asked to stop, 0: none */
    double beat;   /* when the last sign of life was given */
    double looked; /* when it looked for dead workers */
    bool looks;    /* it does just now */
    double end;    /* when Slurm kills it by the same clock, 0: never */
    bool fresh;    /* as in struct worker_place */
    const struct lost *lost; /* the same */
    bool out_of_time;        /* what is open needs longer than there is */
    bool waits;              /* for the disk; said so */
    bool closes;             /* it has put the end: what remains to do is its */
};

/* Read a pending signal: 0 if there is none.  A stop is noted in w->stop. */
int worker_signal (struct worker *w);

/* Give a sign of life and read the log, if it is time. */
int worker_tick (struct worker *w, struct slurmdl_error *err);

const char *worker_nonce (const struct worker *w);

/* A trial whose workers die this often at one segment without a word (the
 * kernel killed them for its memory, say) takes the sweep down no further.
 */
enum { LOST_MAX = 20 };

/* No attempt may begin on this machine. */
bool worker_is_excluded (const struct worker *w);

/* May it begin something? */
bool worker_may_begin (const struct worker *w);

/* Whether another worker that lives has the trial's next attempt. */
bool worker_trains (struct worker *w, long trial);

/* As sweep_put(); while the disk is full it waits and tries again, until it
 * is told to go.
 */
int worker_put (struct worker *w,
                struct event *events,
                size_t n,
                struct slurmdl_error *err);

/* ---- what came of an attempt (report.c) ---- */

/* Put it; nothing if the attempt was fenced meanwhile. */
int worker_put_report (struct worker *w,
                       long trial,
                       struct report *r,
                       struct slurmdl_error *err);

/* Nothing is trained any more: write results.h5, remove the checkpoints that
 * the policy does not keep.
 */
void worker_close_sweep (const struct worker *w);

/* ---- time (budget.c) ---- */

/* Whether the trial's segment to 'length' (the trial may be the next one)
 * fits into the time that is left, or, if the trainers save checkpoints, a
 * part of it that is worth the while.  Always, in an allocation that is fresh:
 * there is no better one to be had.
 */
bool budget_fits (const struct worker *w, long trial, int64_t length);

/* Whether an attempt that used up a fresh allocation came to nothing: it saved
 * no checkpoint and was no further than those before it.
 */
struct attempt;
bool budget_in_vain (const struct worker *w, const struct attempt *a);

/* ---- what comes next (decide.c) ---- */

/* Both return 1 if they put something into the log (or another worker was
 * faster, and it was read), 0 if there is nothing to do now, -1 on failure.
 */
int worker_decide (struct worker *w, struct slurmdl_error *err);
/* Put a result, and what this worker does next, as one entry; as
 * worker_put().
 */
int worker_put_result (struct worker *w,
                       struct event *result,
                       struct slurmdl_error *err);
/* Instead, once searcher.max_hours is over. */
bool worker_is_late (const struct worker *w);
int worker_wind_up (struct worker *w, struct slurmdl_error *err);

/* ---- points from a program of the user (custom.c) ---- */

/* Ask the program for the point of the next trial; it is started if need be,
 * and told what is new in the sweep.  Meanwhile gives signs of life and reads
 * the log; gives up (SEARCH_WAIT) when the worker is to stop.
 *
 * Returns an enum search_answer, or -1.
 */
int custom_ask (struct worker *w, double *x, struct slurmdl_error *err);
void custom_close (struct worker *w);

/* ---- `dl log` (socket.c) ---- */

struct trainer;

int socket_open (struct worker *w, struct slurmdl_error *err);
void socket_close (struct worker *w);
/* Answer one message that waits on w->socket. */
void socket_serve (struct worker *w, struct trainer *t);
/* The other side: send 'text' to the worker at 'path', wait for its answer. */
int socket_say (const char *path, const char *text, struct slurmdl_error *err);

#endif
