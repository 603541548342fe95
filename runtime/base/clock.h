/* SPDX-License-Identifier: Apache-2.0 */
/* Time that only goes forward. */
#pragma once

/* Seconds on the monotonic clock. */
double monotonic (void);
