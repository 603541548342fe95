/* SPDX-License-Identifier: Apache-2.0 */
/* Monotonic time. */
#include "runtime/base/clock.h"

#include <time.h>

double monotonic (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}
