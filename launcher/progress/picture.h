/* SPDX-License-Identifier: Apache-2.0 */
/* Draw an experiment in a terminal, as dl watch does. */
#pragma once

#include "launcher/progress/gpu_fill.h"
#include "launcher/progress/screen.h"
#include "launcher/progress/workers.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/sweep.h"

struct history_result {
    long trial, attempt;
    int64_t length;
    double value; /* of the first metric */
    double time;  /* seconds since the epoch, by the worker's clock */
};

struct history {
    struct log *log;
    struct history_result *results;
    size_t n;
    double *since; /* since[N - 1] is the time of trial N's last event */
    size_t nsince;
    int64_t limit; /* events with higher trial numbers are ignored */
};

struct picture_trial {
    uint64_t files; /* fingerprint of the metrics files when last read; 0: never */
    bool known;
    struct metric_progress newest;
};

/* Plot 'n' finite values from left to right across the window, 'height' lines
 * high, labelled with the highest and the lowest value.
 */
void line_chart (struct screen *c, const double *values, long n, int height);

/* State kept between two pictures so that each reads only what is new. */
struct picture {
    struct sweep *s;
    struct history history;
    struct worker_view workers;
    struct gpu_fill gpus;
    double looked;                /* when workers and GPUs were last read; 0: never */
    struct picture_trial *trials; /* newest values, by trial */
    long ntrials;
    const char *note; /* a sentence to show from the caller; NULL or "": none */
};

/* Read what is new.  The caller has just synchronized p->s.  Returns -1 with 'err'
 * on failure.
 */
int picture_look (struct picture *p, struct slurmdl_error *err);

/* Draw as much as fits. */
void picture_draw (struct picture *p, struct screen *c);
void picture_free (struct picture *p);
