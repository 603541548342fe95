/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment's folder, and its state: a replay of the decision log. */
#ifndef LAUNCHER_SWEEP_SWEEP_H
#define LAUNCHER_SWEEP_SWEEP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/config/experiment.h"
#include "launcher/journal/event.h"

enum trial_state {
    TRIAL_OPEN,     /* a segment is to be trained, or is being trained */
    TRIAL_PAUSED,   /* has a result; may be promoted */
    TRIAL_FAILED,   /* failed for good */
    TRIAL_REJECTED, /* its trainer says that the point makes no sense */
};

/* An accepted result. */
struct milestone {
    int64_t length;
    long attempt;
};

struct trial {
    enum trial_state state;
    double *x;       /* its point */
    json_t *hparams; /* of it; NULL until trial_hparams() is called */
    int64_t length;  /* of the last accepted result, 0: none */
    int64_t target;  /* of the open segment */
    double metric;   /* last accepted; NaN until there is one */
    double *values; /* the same of all metrics, NULL unless there are several */
    double best;    /* NaN until there is one */
    int64_t best_length;
    double seconds; /* of all accepted segments */
    double spent;   /* in attempts at the open segment that have ended */
    long over;      /* attempts 1 .. over have ended */
    struct milestone *milestones; /* by length */
    size_t nmilestones;
    long from;           /* begun with this trial's checkpoint ... */
    int64_t from_length; /* ... of this length; 0: not */
    int64_t reported;    /* length of the last report, 0: none */
    double report;       /* the metric there */
    bool stopped;        /* the searcher ended it before max_length */
    int fails;
    int losts;
    char *why;         /* it failed last, or NULL */
    char *owner;       /* worker whose attempt over + 1 is, NULL: not known */
    char *host, *gpus; /* of the last attempt that ended, or NULL */
    double begin_time; /* s since the epoch, on its worker's clock */
    double end_time;   /* of the last result */
};

/* An array of workers that was submitted to Slurm. */
struct submit {
    char *job;
    long first, last;
    double time; /* s since the epoch, on its submitter's clock */
};

/* Machines on which attempts ended. */
struct host {
    char *name;
    int fails;      /* attempts that failed since one succeeded ... */
    long trials[2]; /* ... of these trials at least; 0: none */
    long before;    /* results of the sweep when they began to */
    long results;
    char *why; /* no attempt begins there any more, or NULL */
};

/* What somebody wished. */
struct deed {
    const char *what; /* "paused" */
    bool undone;
    double time;
    char *by;
};

enum sweep_state {
    SWEEP_NEW, /* no first log entry yet */
    SWEEP_RUNNING,
    SWEEP_PAUSED,
    SWEEP_STOPPED, /* by somebody, gracefully */
    SWEEP_KILLED,
    SWEEP_COMPLETED,
    SWEEP_FAILED, /* no trial gave a result */
};

struct sweep {
    char *dir;
    struct experiment *exp;
    struct log *log;
    struct searcher *searcher; /* NULL while SWEEP_NEW */
    enum sweep_state state;
    bool expired;         /* no segment begins any more */
    struct trial *trials; /* trial N is trials[N - 1] */
    long ntrials;
    long best;      /* number of the best trial, 0: none */
    long *history;  /* in the order of the log: N: trial N has begun, ... */
    long nhistory;  /* ... -N: a segment of it has ended for good */
    long nresults;  /* that were accepted */
    double created; /* s since the epoch, on the creator's clock */
    double changed; /* the same of the last event */
    bool archived;
    char **labels; /* NULL-ended, or NULL */
    struct submit *submits;
    size_t nsubmits;
    long wanted;    /* workers, by `dl scale`; 0: as the experiment says */
    char **retired; /* slots that are to end, NULL-ended, or NULL */
    struct host *hosts;
    size_t nhosts;
    struct deed deed; /* the last */
};

/* Open an experiment's folder and read its log.  'p' takes what is wrong
 * with its experiment.conf.  Returns NULL on failure.
 */
struct sweep *
sweep_open (const char *dir, struct problems *p, struct slurmdl_error *err);
void sweep_close (struct sweep *s);

/* Make a new experiment from 'e', which stays the caller's: the folder
 * ROOT/NAME-0001 (or the first number that is free) with a copy of the file
 * and the first log entry.  Its path is written to 'dir'.
 */
int sweep_new (const struct experiment *e,
               const char *root,
               char *dir,
               size_t size,
               struct slurmdl_error *err);

/* Put the checkpoint e->source_file into a new experiment's folder, as that of
 * an attempt (source.c); and that attempt's folder.
 */
int source_put (const struct experiment *e,
                const char *dir,
                struct slurmdl_error *err);
void source_dir (char *buf, size_t size, const char *dir);

/* Read what is new in the log.  Returns the number of new entries, or -1. */
int sweep_sync (struct sweep *s, struct slurmdl_error *err);

/* Put 'n' events, of now, as one entry, and read the log, that included.
 * Returns 0 if they are in, 1 if somebody was faster (the log was read), -1
 * on failure.
 */
int sweep_put (struct sweep *s,
               struct event *events,
               size_t n,
               struct slurmdl_error *err);

/* Put one event until it is in, or 'still' (if given) says that it makes no
 * sense any more.  Returns 0, 1 if it is not in for that reason, -1.
 */
int sweep_insist (struct sweep *s,
                  struct event event,
                  bool (*still) (const struct sweep *s, const void *arg),
                  const void *arg,
                  struct slurmdl_error *err);

/* Apply one event to the state (replay.c); 'sweep' is a struct sweep. */
int sweep_apply (const struct event *event,
                 void *sweep,
                 struct slurmdl_error *err);

/* Whether a wish (EVENT_PAUSE to EVENT_KILL, EVENT_CONTINUE, EVENT_ARCHIVE)
 * makes sense in a state; all other events do in each (states.c).
 */
bool sweep_allows (enum sweep_state state, enum event_op op);

/* The state after a wish that makes sense, or after EVENT_END. */
enum sweep_state sweep_next_state (enum sweep_state state, enum event_op op);

/* No worker is to work: the states from SWEEP_STOPPED on. */
bool sweep_has_ended (const struct sweep *s);

/* ---- views ---- */

const char *sweep_state_name (enum sweep_state state);

/* "open", "paused", ... as users see it: depends on the experiment too. */
const char *trial_state_name (const struct sweep *s, const struct trial *t);

/* Which of two metric values is better; NaN is worst. */
bool sweep_better (const struct sweep *s, double a, double b);

struct trial *sweep_trial (const struct sweep *s, long number);

/* Its hyperparameters as JSON; NULL if out of memory.  The trial keeps it. */
const json_t *trial_hparams (const struct sweep *s, const struct trial *t);

/* Whether it is the machine that fails, if this trial's attempt has just
 * failed there: attempts of several trials did in a row while as many
 * succeeded elsewhere.  Never most of the machines.
 */
bool host_spoils (const struct sweep *s, const char *name, long trial);

/* What is known of a machine, NULL: nothing. */
struct host *sweep_host (const struct sweep *s, const char *name);

/* Whether the worker of 'slot' is to end. */
bool sweep_retires (const struct sweep *s, const char *slot);

/* searcher.max_hours are over, by the clock of this machine. */
bool sweep_is_late (const struct sweep *s);

/* The searcher asks for reports, and stops trials by them. */
bool sweep_wants_reports (const struct sweep *s);

/* The metrics that are optimised, 1 at least, and their names. */
size_t sweep_metrics (const struct sweep *s);
const char *sweep_metric (const struct sweep *s, size_t i);

/* Which trials no other one beats in one metric without being beaten in
 * another; trial N is at N - 1.  The caller frees it; NULL if out of memory.
 */
bool *sweep_front (const struct sweep *s);

/* The attempt whose result at 'length' was accepted, 0: none. */
long trial_milestone (const struct trial *t, int64_t length);

/* The last one, { 0, 0 } if there is none. */
struct milestone trial_last (const struct trial *t);

#endif
