/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment: its folder, and its state, which is a replay of the decision log. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "launcher/sweep/conditions.h"
#include "launcher/sweep/event.h"
#include "launcher/sweep/tries.h"
#include "launcher/sys/digest.h"
#include "runtime/base/error.h"

struct experiment;
struct problems;

enum sweep_trial_state {
    TRIAL_OPEN,     /* a segment waits to be trained, or is being trained */
    TRIAL_PAUSED,   /* has a result; may be promoted */
    TRIAL_FAILED,   /* failed for good */
    TRIAL_REJECTED, /* its trainer reported that the point makes no sense */
};

/* An accepted result. */
struct milestone {
    int64_t length;
    long attempt;
    double metric;
    double *values; /* of all metrics; NULL unless there are several */
    bool reported;  /* it is a report of the previous attempt, whose worker died: this attempt
                       trained nothing, and has no folder */
};

struct failed_attempt {
    long number;
    bool files_may_be_broken; /* which it resumed from, if it failed before its first metric */
};

struct sweep_trial {
    enum sweep_trial_state state;
    double *x;                    /* its point */
    double *began;                /* the point before on_oom changed it; NULL: the same */
    json_t *hparams;              /* of the point; NULL until trial_hparams() is called */
    int64_t length;               /* of the last accepted result; 0: none */
    int64_t target;               /* of the open segment */
    double metric;                /* of the last accepted result; NaN: none */
    double seconds;               /* total of all attempts that have ended */
    double spent;                 /* s in ended attempts at the open segment */
    long over;                    /* attempts 1 to 'over' have ended */
    struct milestone *milestones; /* accepted results, by length */
    size_t nmilestones;
    struct failed_attempt *failed; /* those that count as failures, ascending */
    size_t nfailed;
    long from;           /* it began with the checkpoint of this trial ... */
    int64_t from_length; /* ... at this length; 0: it began without one */
    int64_t reported;    /* length of the last report; 0: none */
    double report;       /* the metric in that report */
    bool stopped;        /* the searcher ended it before max_length */
    int64_t ended;       /* the step at which its trainer ended on its own, before or
                            beyond the length; 0: it did not */
    struct tries tries;
    int ooms;       /* attempts that ran out of memory and were retried, with more memory or
                       with less to do */
    int64_t memory; /* bytes for the open segment, raised after it ran out of memory; 0: it did
                       not */
    char *why;      /* reason of the last failure, or NULL, ... */
    enum condition_reason cause; /* ... and its class */
    char *owner;                 /* worker that runs attempt over + 1; NULL: not known */
    char *host, *gpus;           /* of the last attempt that ended, or NULL */
    double begin_time;           /* s since the epoch, by its worker's clock */
    double end_time;             /* of the last result */
    struct conditions conditions;
};

/* A job array of workers that was submitted to Slurm. */
struct submit {
    char *job;
    long first, last;
    double time;    /* s since the epoch, by its submitter's clock */
    int64_t memory; /* bytes requested for each task; 0: not known */
};

/* How the trials compare (best.h); computed on demand. */
struct standing {
    long results;   /* the sweep's number of results when this was computed */
    int64_t length; /* at which points are compared; 0: none */
    long n;         /* repeats that a point needs in order to be compared */
    long best;      /* number of the best trial; 0: none */
};

/* A node on which attempts ended. */
struct host {
    char *name;
    int fails;      /* attempts that failed there since the last one that succeeded */
    long trials[2]; /* two of the trials to which these belong; 0: none */
    long before;    /* the sweep's number of results when these failures began */
    long results;   /* attempts that succeeded there */
    char *why;      /* why the node is excluded; NULL: it is not */
};

/* Attempts that failed in the same way (replay.h). */
struct fault {
    char *key; /* what they have in common (fault_key()) */
    int count;
    char *host;                  /* of the first attempt; NULL: not known */
    bool spread;                 /* another attempt failed on another host */
    char *why;                   /* reason of the last failure, ... */
    enum condition_reason cause; /* ... its class, ... */
    long trial, attempt;         /* ... the attempt that failed, ... */
    double seconds;              /* ... how long it took, ... */
    char *slot;                  /* ... and the slot of its worker */
};

/* Why the experiment was paused, and the attempt whose log shows it. */
struct pause_cause {
    char *why; /* NULL: a user paused it */
    enum condition_reason cause;
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
    SWEEP_STOPPED, /* by a user, gracefully */
    SWEEP_KILLED,
    SWEEP_COMPLETED,
    SWEEP_FAILED,  /* no trial gave a result */
    SWEEP_PARTIAL, /* completed, but more than max_failed trials failed */
};

/* Version of the log's format and of the rules of its replay. */
enum { LOG_VERSION = 1 };

struct sweep {
    char *dir;
    char *word;               /* the folder's name, quoted for commands that users may copy */
    char *frozen;             /* the text of experiment.conf, ... */
    char digest[DIGEST_SIZE]; /* ... its SHA-256, ... */
    uid_t owner;              /* ... and its owner */
    char *logged_digest;      /* the SHA-256 that the first log entry recorded */
    uid_t log_owner;          /* owner of the first log entry; -1: there is none */
    char *id;                 /* random; NULL while SWEEP_NEW */
    char pin[DIGEST_SIZE];    /* digest of what this process may start (trust.h); "": nothing */
    char *code;               /* digest of the frozen code; NULL: none */
    char *root;               /* the folder that was frozen */
    bool is_mended;           /* 'code' is not what the first log entry recorded */
    char *provenance;         /* digest of provenance.json; NULL: none */
    struct experiment *exp;
    struct log *log;
    struct searcher *searcher; /* NULL while SWEEP_NEW */
    int searcher_file;         /* descriptor (snapshot.h); 0: none */
    enum sweep_state state;
    bool expired;               /* no further segment begins */
    bool reached;               /* a result reached searcher.goal */
    struct sweep_trial *trials; /* trial N is trials[N - 1] */
    long ntrials;
    long *open; /* numbers of the trials whose state is TRIAL_OPEN, ascending */
    long nopen;
    struct standing standing;
    long *history; /* in the order of the log: N if trial N began, ... */
    long nhistory; /* ... -N if a segment of it ended for good */
    long nresults; /* number of accepted results */
    struct {       /* totals over all trials that have a length */
        double seconds, length;
    } pace;
    double created; /* s since the epoch, by the creator's clock */
    double changed; /* time of the last event */
    double asked;   /* time of the last stop or kill */
    long changes;   /* number of events that results.h5 shows */
    bool archived;
    char **labels; /* NULL-ended, or NULL */
    struct submit *submits;
    size_t nsubmits;
    long starts;    /* how often a start of workers was announced */
    long wanted;    /* workers that `dl scale` requested; 0: use the experiment's setting */
    char **retired; /* slots whose workers should leave, NULL-ended, or NULL */
    struct host *hosts;
    size_t nhosts;
    struct last_action last_action;
    int64_t memory;               /* bytes that a trial gets on each node, raised after one ran out
                                     of memory; 0: use the experiment's setting */
    int64_t memory_limit;         /* most bytes that Slurm grants; 0: not known */
    struct conditions conditions; /* before the first trial */
    struct fault *faults;         /* while there is no result */
    size_t nfaults;
    struct pause_cause cause;
};

/* Bytes that the path of an experiment must leave for the paths of its files. */
enum { SWEEP_FILES_LENGTH = 200 };

/* Open an experiment's folder and read its log.  Problems in its experiment.conf are added to 'p'.
 * Returns NULL with 'err' and errno.
 */
struct sweep *sweep_open (const char *dir, struct problems *p, struct slurmdl_error *err);
void sweep_close (struct sweep *s);

/* Read new entries of the log, and return how many there were, or -1 with 'err'. */
int sweep_sync (struct sweep *s, struct slurmdl_error *err);

/* Call this after a failure: if the experiment's folder no longer exists, report that in 'err'
 * instead, with errno ENOENT.
 */
void sweep_blame_folder (const struct sweep *s, struct slurmdl_error *err);

/* Write to stable storage what was published under log_defer(); -1 with 'err'. */
int sweep_fsync (const struct sweep *s, struct slurmdl_error *err);

/* Publish 'n' events with the current time as one entry, and apply them.  PUBLISH_LATE: another
 * process wrote the entry first, and the log was read again.
 */
enum published sweep_publish (struct sweep *s, struct event *events, size_t n,
                              struct slurmdl_error *err);

/* Publish one event, and retry while other processes are faster.  Gives up with PUBLISH_LATE as
 * soon as 'still', unless NULL, returns false because the event has become obsolete.
 */
enum published sweep_insist (struct sweep *s, struct event event,
                             bool (*still) (const struct sweep *s, const void *arg),
                             const void *arg, struct slurmdl_error *err);
