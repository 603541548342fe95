/* SPDX-License-Identifier: Apache-2.0 */
/* Find since when the GPUs of a node have had no work.  Pure. */
#pragma once

#include <stdbool.h>

#include "launcher/sys/gpu_readings.h"

struct idle_gpu {
    int index;
    double since; /* time of the first sample without work; NaN: it works, or its load is unknown */
    bool is_long; /* it has been idle for the limit or longer */
    bool is_new;  /* is_long became true with this sample */
};

struct idle_gpus {
    double limit; /* s */
    double last;  /* time of the previous sample; NaN: none */
    int n;
    struct idle_gpu gpus[GPUS_MAX];
};

/* Add a sample taken at 'now', in seconds of a monotonic clock.  If there was no sample for three
 * quarters of the limit, because the job was suspended or the driver did not answer, that time
 * counts as work.
 */
void idle_take (struct idle_gpus *g, const struct gpu_readings *r, double now);

/* Whether the last sample had GPUs, and all of them have been idle for the limit or longer. */
bool idle_all (const struct idle_gpus *g);

/* Describe the GPUs whose is_new is true: "GPUs 0, 1 of n1 (ranks 0, 1) have been idle since
 * 06:20:13, for 10 min".  If there is none, 'buf' becomes "", and the function returns false.
 * 'rank_of' returns the rank of a process on a GPU; -1: none.
 */
bool idle_text (const struct idle_gpus *g, const struct gpu_readings *r, const char *node,
                double now, long (*rank_of) (const void *arg, pid_t pid), const void *arg,
                char *buf, size_t size);
