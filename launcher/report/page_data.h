/* SPDX-License-Identifier: Apache-2.0 */
/* Collect what a report shows, and the JSON from which its script draws. */
#pragma once

#include "launcher/report/report.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/sweep.h"
#include "searcher/models/importance.h"

/* ---- importance of parameters ---- */

/* Importance of the parameters in the experiment with the most trials. */
struct explanation {
    struct importance of;
    bool known;
    size_t sweep;
    int64_t length; /* length at which trials are compared; 0: each at its best */
    long *param;    /* for each dimension, index of the report's parameter or -1 */
};

/* Return the share of the variance that a parameter explains, or NaN if unknown. */
double explained_share (const struct explanation *x, size_t param);

/* ---- GPU use ---- */

enum { GPU_BINS = 40, ADVICE_MAX = 40 };

struct gpu_attempt {
    size_t attempt; /* index in the report's attempts */
    int gpus;
    double busy;           /* mean in per cent; NaN: unknown */
    double memory;         /* maximum as a part of the GPU's memory; NaN: unknown */
    double bins[GPU_BINS]; /* 'busy' over the time of the attempt; NaN: unknown */
};

struct gpu_advice {
    char text[320];
    long n; /* number of attempts */
};

struct gpu_use {
    struct gpu_attempt *list;
    size_t n;
    struct gpu_advice advice[ADVICE_MAX]; /* most frequent first */
    size_t nadvice;
};

/* ---- all data ---- */

struct report_data {
    struct report report;
    struct report_params params;
    struct curves curves;
    struct explanation explanation;
    struct gpu_use gpus;
    long *order; /* trials with a finite value, best first */
    long nordered;
};

/* Read all data.  'old' is passed to curves_read().  Returns -1 with 'err' on failure.
 * Call data_free() in every case.
 */
int data_read (struct report_data *d, struct sweep *const *list, size_t n, struct rows *old,
               struct slurmdl_error *err);
void data_free (struct report_data *d);

/* Return the data in the layout of doc/formats.md: one list for each column of the
 * table of trials.  One object for each of 10,000 trials would make the page several
 * times as large.
 */
json_t *data_json (const struct report_data *d);
