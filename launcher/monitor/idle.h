/* SPDX-License-Identifier: Apache-2.0 */
/* Since when the GPUs of a node have no work: pure. */
#pragma once

#include <stdbool.h>

#include "launcher/monitor/gpu_readings.h"

struct idle_gpu {
    int index;
    double since; /* of the first sample without work; NaN: it works, or its load is not known */
    bool is_long; /* as the limit, or longer */
    bool is_new;  /* since this sample */
};

struct idle_gpus {
    double limit; /* s */
    double last;  /* time of the sample before; NaN: none */
    int n;
    struct idle_gpu gpus[GPUS_MAX];
};

/* Take a sample of 'now', in seconds of a clock that nobody sets.  Time in
 * which nothing was sampled for three quarters of the limit, because the job
 * was suspended or the driver did not answer, counts as work.
 */
void idle_take (struct idle_gpus *g, const struct gpu_readings *r, double now);

/* Whether all GPUs of the last sample are idle for so long, and there are some. */
bool idle_all (const struct idle_gpus *g);

/* What --dl-monitor tells of those that are new: "GPUs 0, 1 of n1 (ranks 0, 1)
 * have been idle since 06:20:13, for 10 min".  'rank_of' maps the pid of
 * a process on a GPU to its rank, -1: none.  "", and returns false, if there is none.
 */
bool idle_text (const struct idle_gpus *g, const struct gpu_readings *r, const char *node,
                double now, long (*rank_of) (const void *arg, pid_t pid), const void *arg,
                char *buf, size_t size);
