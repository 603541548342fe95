/* SPDX-License-Identifier: Apache-2.0 */
/* What attempts made of their GPUs, from the files of srun --dl-monitor. */
#pragma once

#include "launcher/report/model.h"

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
