/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment's folder, and its state: a replay of the decision log. */
#ifndef LAUNCHER_SWEEP_H
#define LAUNCHER_SWEEP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "launcher/experiment.h"

enum trial_state {
    TRIAL_OPEN,   /* a segment is to be trained, or is being trained */
    TRIAL_PAUSED, /* has a result; may be promoted */
    TRIAL_FAILED, /* failed for good */
};

struct trial {
    enum trial_state state;
    json_t *hparams;
    int64_t length; /* of the last accepted result, 0: none */
    int64_t target; /* of the open segment */
    double metric;  /* last accepted; NaN until there is one */
    double best;    /* NaN until there is one */
    int64_t best_length;
    double seconds; /* of all accepted segments */
    long over;      /* attempts 1 .. over have ended */
    long accepted;  /* attempt of the last accepted result, 0: none */
    int fails;
    int losts;
    char *why; /* it failed last, or NULL */
};

enum sweep_state {
    SWEEP_NEW, /* no first log entry yet */
    SWEEP_RUNNING,
    SWEEP_STOPPED,
    SWEEP_COMPLETED,
    SWEEP_FAILED, /* every trial failed */
};

struct sweep {
    char *dir;
    struct experiment *exp;
    struct log *log;
    struct searcher *searcher; /* NULL while SWEEP_NEW */
    enum sweep_state state;
    struct trial *trials; /* trial N is trials[N - 1] */
    long ntrials;
    long best;      /* number of the best trial, 0: none */
    double created; /* s since the epoch, on the creator's clock */
    double changed; /* the same of the last event */
    json_t *create; /* the first event */
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

/* Read what is new in the log.  Returns the number of new entries, or -1. */
int sweep_sync (struct sweep *s, struct slurmdl_error *err);

/* Put events and read the log, the new entry included.  Returns 0 if they
 * are in, 1 if somebody was faster (the log was read), -1 on failure.
 * Takes the array over.
 */
int sweep_put (struct sweep *s, json_t *events, struct slurmdl_error *err);

/* Name of the user, "" if unknown. */
const char *sweep_user (void);

/* Events; 'by' is the worker or user.  NULL if out of memory. */
json_t *event_create (const char *op, const char *by);
json_t *event_trial (const char *op, const char *by, long trial, long attempt);

/* ---- views ---- */

const char *sweep_state_name (enum sweep_state state);

/* "open", "paused", ... as users see it: depends on the experiment too. */
const char *trial_state_name (const struct sweep *s, const struct trial *t);

/* Which of two metric values is better; NaN is worst. */
bool sweep_better (const struct sweep *s, double a, double b);

struct trial *sweep_trial (const struct sweep *s, long number);

/* JSON of a number, with "nan", "inf" and "-inf" as strings, and back. */
json_t *number_json (double v);
double number_of (const json_t *v);

#endif
