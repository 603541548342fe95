/* SPDX-License-Identifier: Apache-2.0 */
/* Run one attempt at a segment to its end, whatever that is. */
#pragma once

#include "launcher/worker/failure.h"
#include "launcher/worker/services.h"

enum segment_outcome {
    OUTCOME_RESULT,   /* the metric at the segment's end */
    OUTCOME_FAILED,   /* counts towards max_restarts */
    OUTCOME_PARKED,   /* stopped on request before the end */
    OUTCOME_REJECTED, /* its trainer says that the point makes no sense */
    OUTCOME_DROPPED,  /* another worker has the trial now */
};

struct segment_report {
    enum segment_outcome outcome;
    int64_t length;
    bool stopped;  /* by the searcher, before the segment's end */
    int64_t ended; /* the trainer ended by itself before it, at this step; 0:
                      not */
    double values[OBJECTIVES_MAX];
    double seconds;
    struct failure_class verdict; /* of a failure */
    int64_t memory, peak;         /* bytes that it had, and was seen to need; 0: not
                                     known */
    struct trainer *trainer;      /* its metrics are to be synced with the result;
                                     NULL: they are */
    struct {
        int64_t memory;  /* 0: no other, ... */
        double *x;       /* ... NULL: the same point, else all parameters' */
        json_t *hparams; /* of x */
    } retry;             /* with what a failed attempt is tried again */
};

/* Its report is then to be released by segment_end(). */
int segment_run (struct worker *w, long trial, struct segment_report *report,
                 struct slurmdl_error *err);

/* Release the trainer of a report. */
void segment_end (struct segment_report *report);
