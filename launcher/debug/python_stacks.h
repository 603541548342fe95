/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the main threads of Python ranks are where they were. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "launcher/debug/live_ranks.h"
#include "launcher/debug/progress.h"

enum { SAMPLES_MAX = 1024 };

/* Begin with 0. */
struct samples {
    struct sample {
        pid_t pid;
        uint64_t hash; /* of the stack */
    } list[SAMPLES_MAX];
    size_t n;
};

/* Look at the stacks of ranks that have made no progress since that time; one
 * that differs from the last look is progress.  The look itself leaves traces:
 * progress_look() with 'asked' must follow.
 */
void samples_take (struct samples *s, const struct roots *roots, struct rank_progress *progress,
                   double since);
