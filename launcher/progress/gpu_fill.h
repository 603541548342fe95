/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPUs of running trials do now, from the files of --dl-monitor. */
#pragma once

#include "launcher/monitor/usage.h"
#include "launcher/sweep/sweep.h"

/* Means over so many seconds; older samples say nothing of now. */
enum { GPU_WINDOW = 60, GPU_STALE = 180 };

struct gpu_fill {
    int gpus;
    double busy;   /* per cent, mean; NaN: not known */
    double memory; /* share of the GPUs' memory; NaN: not known */
};

/* Call 'f' for each monitored step in the folder 'dir' whose last sample is
 * fresh, with its path and what it used in the last GPU_WINDOW seconds.  A step
 * that cannot be read is passed over.
 */
void monitored_steps (const char *dir,
                      void (*f) (const char *step, const struct usage *usage, void *arg),
                      void *arg);

/* The same for the folders of the attempts of all trials that are open. */
void monitored_trials (const struct sweep *s,
                       void (*f) (const char *step, const struct usage *usage, void *arg),
                       void *arg);

/* How busy and full the GPUs of its open trials are; NaN: not known. */
struct gpu_fill gpu_fill_look (const struct sweep *s);
