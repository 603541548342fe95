/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of a report: experiments, trials, attempts and their cost. */
#pragma once

#include "launcher/report/report_text.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"

enum report_end {
    ATTEMPT_RESULT,
    ATTEMPT_FAILED,
    ATTEMPT_REJECTED,
    ATTEMPT_PARKED,
    ATTEMPT_LOST,
    ATTEMPT_RUNNING,
    ATTEMPT_ENDS
};
extern const char *const attempt_ends[ATTEMPT_ENDS];

/* Trial indices count from 0 across all experiments.  Times are in seconds since the
 * first entry of the experiment's log.
 */
struct report_attempt {
    long trial;
    long number;
    int64_t length; /* length that it should reach */
    size_t slot, cause;
    double ready; /* when it could have begun */
    double begin, end;
    bool told;          /* its worker reported how long it took */
    const char *reason; /* one of condition_reasons (sweep/conditions.h); NULL: none */
    enum report_end how;
};

struct report_result {
    long trial;
    int64_t length;
    double value; /* of the first metric */
};

struct report_request {
    double time;
    const char *what; /* "pause" */
};

/* The checkpoints that a trial still has. */
struct report_files {
    long n;
    double bytes;
    int64_t step; /* step of the newest, or -1 */
    long attempt; /* attempt that saved the newest */
};

struct report_trial {
    size_t sweep;
    const struct sweep_trial *of;
    long number;
    long point; /* with repeats, the first trial of the point */
    struct report_files files;
};

struct report_sweep {
    struct sweep *s;
    const char *name; /* last component of its path */
    long first;       /* index of its first trial */
};

struct report {
    struct report_sweep *sweeps;
    size_t nsweeps;
    struct report_trial *trials;
    long n;
    long best; /* index of the best trial, or -1 */
    struct report_attempt *attempts;
    size_t nattempts;
    struct report_result *results;
    size_t nresults;
    int64_t *lengths; /* lengths of results, sorted */
    size_t nlengths;
    struct report_request *requests;
    size_t nrequests;
    struct words slots, causes;
    bool repeats; /* trials are repeats of points */
    double live;  /* seconds between updates of the file, or 0 */
};

void report_free (struct report *r);

/* Return the state of a trial. */
enum trial_phase report_phase (const struct report *r, long trial);

/* Return the result of the trial's point for a metric of the first experiment. */
struct sweep_result report_result (const struct report *r, long trial, size_t metric);

/* Return its value, or NaN if there is none. */
double report_value (const struct report *r, long trial, size_t metric);

bool report_better (const struct report *r, double a, double b);

/* List the trials with a finite value, best first, followed by those that are not
 * compared (sweep/best.h).  The caller frees the list.  Returns how many.
 */
long report_order (const struct report *r, long **list);

/* Read the experiments, which must outlive the report.  Returns -1 with 'err' if a log
 * cannot be read.  Call report_free() in every case.
 */
int report_fill (struct report *r, struct sweep *const *list, size_t n, struct slurmdl_error *err);

/* Find each trial's checkpoints in the directories of all its attempts. */
void report_fill_files (struct report *r);

/* All values are in seconds. */
struct report_cost {
    double wall;   /* from the first attempt to the last */
    double busy;   /* sum over all attempts */
    double wasted; /* sum over attempts without a result */
    double alive;  /* sum over workers, each from its first attempt to its last */
    double gpus;   /* sum over attempts, each times its number of GPUs */
    size_t attempts;
};

/* Return the cost of one experiment, or of all of them if 'sweep' is r->nsweeps. */
struct report_cost report_cost_of (const struct report *r, size_t sweep);
