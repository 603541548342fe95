/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment's folder, and its state: a replay of the decision log. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/sweep/conditions.h"
#include "launcher/sweep/event.h"
#include "launcher/sys/digest.h"
#include "runtime/base/error.h"

struct experiment;
struct problems;

enum sweep_trial_state {
    TRIAL_OPEN,     /* a segment is to be trained, or is being trained */
    TRIAL_PAUSED,   /* has a result; may be promoted */
    TRIAL_FAILED,   /* failed for good */
    TRIAL_REJECTED, /* its trainer says that the point makes no sense */
};

/* An accepted result. */
struct milestone {
    int64_t length;
    long attempt;
    double metric;
    double *values; /* of all metrics, NULL unless there are several */
    bool reported;  /* by the attempt before, whose worker died: this one had
                       nothing to train, and has no folder */
};

struct sweep_trial {
    enum sweep_trial_state state;
    double *x;                    /* its point */
    double *began;                /* the point it began at, NULL: the same (on_oom) */
    json_t *hparams;              /* of it; NULL until trial_hparams() is called */
    int64_t length;               /* of the last accepted result, 0: none */
    int64_t target;               /* of the open segment */
    double metric;                /* last accepted; NaN until there is one */
    double seconds;               /* of all attempts that have ended */
    double spent;                 /* in attempts at the open segment that have ended */
    long over;                    /* attempts 1 .. over have ended */
    struct milestone *milestones; /* by length */
    size_t nmilestones;
    long *failed; /* attempts that failed and count, ascending */
    size_t nfailed;
    long from;           /* begun with this trial's checkpoint ... */
    int64_t from_length; /* ... of this length; 0: not */
    int64_t reported;    /* length of the last report, 0: none */
    double report;       /* the metric there */
    bool stopped;        /* the searcher ended it before max_length */
    int64_t ended;       /* its trainer ended it by itself at this step, before
                            or beyond the length; 0: not */
    int fails;
    int losts;
    int ooms;          /* attempts that ran out of memory, and were tried again with more
                          or with less to do */
    int64_t memory;    /* bytes that its open segment is tried with, since it ran
                          out of memory; 0: it has not */
    char *why;         /* it failed last, or NULL */
    char *owner;       /* worker whose attempt over + 1 is, NULL: not known */
    char *host, *gpus; /* of the last attempt that ended, or NULL */
    double begin_time; /* s since the epoch, on its worker's clock */
    double end_time;   /* of the last result */
    struct conditions conditions;
};

/* An array of workers that was submitted to Slurm. */
struct submit {
    char *job;
    long first, last;
    double time;    /* s since the epoch, on its submitter's clock */
    int64_t memory; /* bytes that each task was asked to have, 0: not known */
};

/* How the trials compare (best.h), found when somebody asks. */
struct standing {
    long results;   /* that the sweep had then */
    int64_t length; /* at which points are compared, 0: none */
    long n;         /* repeats that a point needs to be compared */
    long best;      /* trial, 0: none */
};

/* Machines on which attempts ended. */
struct host {
    char *name;
    int fails;      /* attempts that failed since one succeeded ... */
    long trials[2]; /* ... of these trials at least; 0: none */
    long before;    /* results of the sweep when they began to */
    long results;
    char *why; /* why no further attempt begins there, or NULL */
};

/* Failed attempts that ended in the same way (replay.h). */
struct fault {
    char *key; /* what they have in common */
    int count;
    char *host;          /* of the first one; NULL: not known */
    bool spread;         /* another one was on another host */
    char *why;           /* of the last one, which was ... */
    long trial, attempt; /* ... this */
    double seconds;      /* that it took */
    char *slot;          /* of its worker */
};

/* Why the experiment was paused, and the attempt whose log shows it. */
struct pause_cause {
    char *why; /* NULL: somebody wanted it */
    long trial, attempt;
};

/* The last request of a user. */
struct last_action {
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
    SWEEP_FAILED,  /* no trial gave a result */
    SWEEP_PARTIAL, /* completed, but more than max_failed trials failed */
};

/* Version of the log's format and of the rules by which it is replayed. */
enum { LOG_VERSION = 4 };

struct sweep {
    char *dir;
    char *word;               /* the folder's name in commands that a user may copy */
    char *frozen;             /* the experiment.conf that was read, ... */
    char digest[DIGEST_SIZE]; /* ... its SHA-256, ... */
    uid_t owner;              /* ... whose file it is, ... */
    char *logged_digest;      /* ... and that of the first log entry, ... */
    uid_t log_owner;          /* ... whose file this entry is; -1: nobody's */
    char *id;                 /* random; NULL while SWEEP_NEW */
    char pin[DIGEST_SIZE];    /* of what this process may start (trust.h); "":
                                 nothing */
    char *code;               /* digest of the frozen code, NULL: none ... */
    char *root;               /* ... and the folder that it was */
    bool is_mended;           /* it is not that of the first log entry */
    char *provenance;         /* digest of provenance.json, NULL: none */
    struct experiment *exp;
    struct log *log;
    struct searcher *searcher; /* NULL while SWEEP_NEW */
    int searcher_file;         /* snapshot.h; 0: none */
    enum sweep_state state;
    bool expired;               /* no further segment begins */
    bool reached;               /* searcher.goal */
    struct sweep_trial *trials; /* trial N is trials[N - 1] */
    long ntrials;
    long *open; /* numbers of the trials whose state is TRIAL_OPEN, ascending */
    long nopen;
    struct standing standing;
    long *history; /* in the order of the log: N: trial N has begun, ... */
    long nhistory; /* ... -N: a segment of it has ended for good */
    long nresults; /* that were accepted */
    struct {       /* of all trials that have a length */
        double seconds, length;
    } pace;
    double created; /* s since the epoch, on the creator's clock */
    double changed; /* the same of the last event */
    double asked;   /* the same of the last stop or kill */
    long changes;   /* events but those that results.h5 does not show */
    bool archived;
    char **labels; /* NULL-ended, or NULL */
    struct submit *submits;
    size_t nsubmits;
    long starts;    /* times that somebody has announced to start workers */
    long wanted;    /* workers, by `dl scale`; 0: as the experiment says */
    char **retired; /* slots that are to end, NULL-ended, or NULL */
    struct host *hosts;
    size_t nhosts;
    struct last_action last_action;
    int64_t memory;               /* bytes that a trial has on each of its nodes, since
                                     one ran out of memory; 0: as the experiment says */
    int64_t memory_limit;         /* Slurm gives no more, 0: not known */
    struct conditions conditions; /* before the first trial */
    struct fault *faults;         /* while there is no result */
    size_t nfaults;
    struct pause_cause cause;
};

/* An experiment's path leaves room for those of its files. */
enum { SWEEP_FILES_LENGTH = 200 };

/* Open an experiment's folder and read its log.  'p' takes what is wrong
 * with its experiment.conf.  Returns NULL on failure.
 */
struct sweep *sweep_open (const char *dir, struct problems *p, struct slurmdl_error *err);
void sweep_close (struct sweep *s);

/* Read what is new in the log.  Returns the number of new entries, or -1. */
int sweep_sync (struct sweep *s, struct slurmdl_error *err);

/* After a failure: if the folder is not there any more, that is what 'err' says
 * instead, with errno ENOENT.
 */
void sweep_blame_folder (const struct sweep *s, struct slurmdl_error *err);

/* Have on stable storage what was published with log_defer(). */
int sweep_settle (const struct sweep *s, struct slurmdl_error *err);

/* Publish 'n' events, with the present time, as one entry, and read the log, that entry included.
 * PUBLISH_LATE: the log was read.
 */
enum published sweep_publish (struct sweep *s, struct event *events, size_t n,
                              struct slurmdl_error *err);

/* Publish one event, retrying until it is in the log or 'still', if not NULL, finds it obsolete:
 * PUBLISH_LATE.
 */
enum published sweep_insist (struct sweep *s, struct event event,
                             bool (*still) (const struct sweep *s, const void *arg),
                             const void *arg, struct slurmdl_error *err);
