/* SPDX-License-Identifier: Apache-2.0 */
/* Current GPU utilization of running trials, from the files of --dl-monitor. */
#pragma once

#include "launcher/monitor/usage.h"
#include "launcher/sweep/sweep.h"

/* Means cover the last GPU_WINDOW seconds.  A step without a sample in the last
 * GPU_STALE seconds is ignored.
 */
enum { GPU_WINDOW = 60, GPU_STALE = 180 };

struct gpu_fill {
    int gpus;
    double busy;   /* mean, per cent; NaN if unknown */
    double memory; /* used share of the GPUs' memory, 0..1; NaN if unknown */
};

/* Call 'f' for each monitored step in the directory 'dir' that has a recent sample.
 * 'f' gets the step's path and its usage over the last GPU_WINDOW seconds.  Steps
 * that cannot be read are skipped.
 */
void monitored_steps (const char *dir,
                      void (*f) (const char *step, const struct usage *usage, void *arg),
                      void *arg);

/* Like monitored_steps(), for the attempts of all open trials. */
void monitored_trials (const struct sweep *s,
                       void (*f) (const char *step, const struct usage *usage, void *arg),
                       void *arg);

/* Measure how busy and how full the GPUs of the open trials are. */
struct gpu_fill gpu_fill_look (const struct sweep *s);
