/* SPDX-License-Identifier: Apache-2.0 */
/* Count the attempts of a trial, or of a task of a flow, that gave no result, and decide when to
 * give up.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct tries {
    int failed;
    int lost; /* do not count as failures, but do not go on for ever */
};

/* How an attempt ended.  If none of these holds, it failed. */
struct try_end {
    bool last;     /* another attempt would fail, too */
    bool progress; /* it got further than those before it, so counting starts again */
    bool free;     /* its program was not to blame, or its worker died */
};

/* Count an attempt.  Returns whether to give up: 'max' failures are allowed (max_restarts, or
 * retries of a step), and 20 lost attempts.
 */
bool tries_add (struct tries *t, struct try_end end, int64_t max);
