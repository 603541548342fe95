/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of an experiment in a terminal. */
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
    double time;  /* s since the epoch, on its worker's clock */
};

struct history {
    struct log *log;
    struct history_result *results;
    size_t n;
    double *since; /* of trial N at N - 1: the time of its last event */
    size_t nsince;
    int64_t limit; /* numbers of trials above are ignored */
};

struct picture_trial {
    uint64_t files; /* what the metrics files were like; 0: never seen */
    bool known;
    struct metric_progress newest;
};

/* Of 'n' finite values in their order, across the window; the highest and the
 * lowest value stand beside it.
 */
void line_chart (struct screen *c, const double *values, long n, int height);

/* What was read of an experiment, so that only what is new is read again. */
struct picture {
    struct sweep *s;
    struct history history;
    struct worker_view workers;
    struct gpu_fill gpus;
    double looked;                /* at workers and GPUs; 0: never */
    struct picture_trial *trials; /* newest values, by trial */
    long ntrials;
    const char *note; /* a sentence of who started it, NULL or "": none */
};

/* Look what is new; 's' was read just before.  Returns -1 with 'err'. */
int picture_look (struct picture *p, struct slurmdl_error *err);

/* Draw it, with as much as there is room for. */
void picture_draw (struct picture *p, struct screen *c);
void picture_free (struct picture *p);
