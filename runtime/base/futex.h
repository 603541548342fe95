/* SPDX-License-Identifier: Apache-2.0 */
/* Sleep until a word changes; time that never jumps. */
#pragma once

#include <stdatomic.h>
#include <time.h>

/* Wait while '*word' equals 'value', at most 'ms' milliseconds (-1: forever).  May return early. */
void futex_wait (atomic_uint *word, unsigned value, long ms);

void futex_wake (atomic_uint *word);

/* The same between processes that share the memory. */
void futex_wait_shared (atomic_uint *word, unsigned value, long ms);
void futex_wake_shared (atomic_uint *word);

/* Milliseconds since 'then', which came from clock_gettime (CLOCK_MONOTONIC). */
long elapsed (const struct timespec *then);
