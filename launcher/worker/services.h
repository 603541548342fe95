/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a worker, and its services: signals, signs of life, log entries.
 */
#pragma once

#include "launcher/sweep/attempt.h"
#include "launcher/sweep/sweep.h"
#include "launcher/trainer/log_socket.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/lost_worker.h"
#include "launcher/worker/memory.h"

struct peer_membership;
struct custom_searcher;

/* A worker at work. */
struct worker {
    struct sweep *sweep;
    const char *slot;
    char host[65];
    char gpus[256];
    struct peer_membership *peer;
    struct custom_searcher *custom; /* NULL: not started */
    int signals;                    /* signalfd */
    struct log_socket socket;
    int stop;                       /* signal that asked to stop, 0: none */
    double beat;                    /* when the last sign of life was given */
    double looked;                  /* when it looked for dead workers */
    bool looks;                     /* it does just now */
    double end;                     /* when Slurm kills it by the same clock, 0: never */
    bool fresh;                     /* as in struct worker_place */
    const struct worker_exit *lost; /* the same */
    bool left_over;                 /* its job has ended */
    bool out_of_time;               /* what is open needs longer than there is */
    bool waits;                     /* for the disk; said so */
    bool rivals;                    /* its last results met those of others ... */
    bool offers;                    /* ... to whom it has left this one (offered_results.h) */
    int held;                       /* waits to see whether a fault has this count ... */
    double held_until;              /* ... until then */
    struct job_memory memory;
    struct {
        double at, took; /* when it last wrote results.h5, and how long */
    } results;
    struct trainer_spare spare;
    char spare_work[SPARE_SIZE]; /* the same of a working folder, or "" */
    bool closes;                 /* it has put the end: what remains to do is its */
};

/* Take the signals that are requests from a descriptor; -1 with errno. */
int worker_watch_signals (void);

/* Read a pending signal: 0 if there is none.  A stop is noted in w->stop. */
int worker_signal (struct worker *w);

/* Give a sign of life and read the log, if it is time. */
int worker_tick (struct worker *w, struct slurmdl_error *err);

/* The name of this worker in claims and results, unlike any other. */
const char *worker_nonce (const struct worker *w);

/* A trial whose workers die this often at one segment without a word (the
 * kernel killed them for its memory, say) takes the sweep down no further.
 */
enum { LOST_MAX = 20 };

/* Wait for a signal, for so long. */
void worker_sleep (struct worker *w, double seconds);

/* Fill in the machine and the GPUs that the trainers see, for the records. */
void worker_describe_node (struct worker *w);

/* searcher.max_hours are over, by the log or by this machine's clock. */
bool worker_is_late (const struct worker *w);

/* No attempt may begin on this machine. */
bool worker_is_excluded (const struct worker *w);

/* May it go on with what there is; may it begin something? */
bool worker_may_go_on (const struct worker *w);
bool worker_may_begin (const struct worker *w);

/* The nonce of the worker that has the trial's next attempt, NULL: nobody. */
const char *worker_owner_of (struct worker *w, long trial);

/* Whether another worker that lives has the trial's next attempt. */
bool worker_trains (struct worker *w, long trial);

/* What came of a turn of the worker's loop, or of a part of it. */
enum turn {
    TURN_FAILED = -1, /* errno says why */
    TURN_IDLE,        /* there is nothing to do now */
    TURN_DONE,        /* something was done, or put into the log by another worker */
    TURN_AGAIN,       /* the state has changed: look again */
    TURN_WAIT         /* there is work that this worker must leave alone */
};

/* As sweep_publish(); while the disk is full it waits and tries again, until it
 * is asked to stop.
 */
int worker_publish (struct worker *w, struct event *events, size_t n, struct slurmdl_error *err);

/* Note and say that it waits for space. */
void worker_wait_for_space (struct worker *w, const struct slurmdl_error *why);

/* Whether there is space for what an attempt will have to say. */
bool worker_has_space (struct worker *w);
