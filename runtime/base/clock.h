/* SPDX-License-Identifier: Apache-2.0 */
/* Time that only goes forward. */
#ifndef RUNTIME_BASE_CLOCK_H
#define RUNTIME_BASE_CLOCK_H

/* Seconds on the monotonic clock. */
double monotonic (void);

#endif
