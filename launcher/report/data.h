/* SPDX-License-Identifier: Apache-2.0 */
/* All that a report says, and the JSON that its script draws. */
#pragma once

#include "launcher/report/curves.h"
#include "launcher/report/model.h"
#include "launcher/report/params.h"
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

/* Trials are compared at one length where that is possible: one that was
 * trained longer is better for that alone.  -1: no memory.  explanation_free()
 * in any case.
 */
int explain (struct explanation *x, const struct report *r, const struct report_params *p);
void explanation_free (struct explanation *x);

/* The share of a parameter of the report; NaN: not known. */
double explained_share (const struct explanation *x, size_t param);

/* The share and the mean by value of a parameter into its object, ... */
void explained_put (const struct explanation *x, const struct report_params *p, size_t param,
                    json_t *o);
/* ... and the surfaces as a list. */
json_t *explained_surfaces (const struct explanation *x, const struct report_params *p);

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
    size_t n, capacity;
    struct gpu_advice advice[ADVICE_MAX]; /* the most frequent first */
    size_t nadvice;
};

/* Look for monitored steps in the folders of all attempts.  -1: no memory.
 * gpu_use_free() in any case.
 */
int gpu_use_read (struct gpu_use *u, const struct report *r);
void gpu_use_free (struct gpu_use *u);

/* What report.js draws of it, an array each; the caller owns it. */
json_t *gpu_use_json (const struct gpu_use *u);

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

/* doc/formats.md has the layout.  NULL: out of memory. */
json_t *data_json (const struct report_data *d);
