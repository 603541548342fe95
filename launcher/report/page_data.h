/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a report shows, and the JSON from which its script draws. */
#pragma once

#include "launcher/report/curves.h"
#include "launcher/report/experiments.h"
#include "launcher/report/params.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/sweep.h"
#include "searcher/models/importance.h"

/* ---- what explains the values ---- */

/* Of the experiment with the most trials. */
struct explanation {
    struct importance of;
    bool known;
    size_t sweep;
    int64_t length; /* at which trials are compared, 0: each at its best */
    long *param;    /* the report's parameter of each of the search */
};

/* The share of a parameter of the report; NaN: not known. */
double explained_share (const struct explanation *x, size_t param);

/* ---- how busy the GPUs were ---- */

enum { GPU_BINS = 40, ADVICE_MAX = 40 };

struct gpu_attempt {
    size_t attempt; /* index in the report's */
    int gpus;
    double busy;           /* mean, per cent; NaN: not known */
    double memory;         /* the most, share of the GPU's; NaN: not known */
    double bins[GPU_BINS]; /* busy over the attempt's time; NaN */
};

struct gpu_advice {
    char text[320];
    long n; /* attempts */
};

struct gpu_use {
    struct gpu_attempt *list;
    size_t n;
    struct gpu_advice advice[ADVICE_MAX]; /* the most frequent first */
    size_t nadvice;
};

/* ---- all of it ---- */

struct report_data {
    struct report report;
    struct report_params params;
    struct curves curves;
    struct explanation explanation;
    struct gpu_use gpus;
    long *order; /* the trials with a finite value, the best first */
    long nordered;
};

/* Read all of it.  'old': as of curves_read().  Returns -1 with 'err'.
 * data_free() in any case.
 */
int data_read (struct report_data *d, struct sweep *const *list, size_t n, struct rows *old,
               struct slurmdl_error *err);
void data_free (struct report_data *d);

/* doc/formats.md has the layout: a list for each column of the table of trials, of which most come
 * from launcher/sweep/columns.h, because an object for each of 10,000 trials would make the page
 * several times as large.
 */
json_t *data_json (const struct report_data *d);
