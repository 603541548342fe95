/* SPDX-License-Identifier: Apache-2.0 */
/* futex(2): libc cannot wait on a word with a timeout on the monotonic clock. */
#include "runtime/base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_as (int how, atomic_uint *word, unsigned value, long ms)
{
    struct timespec most = { ms / 1000, ms % 1000 * 1000000 };

    syscall (SYS_futex, word, how, value, ms < 0 ? NULL : &most, NULL, 0);
}

void futex_wait (atomic_uint *word, unsigned value, long ms)
{
    wait_as (FUTEX_WAIT_PRIVATE, word, value, ms);
}

void futex_wait_shared (atomic_uint *word, unsigned value, long ms)
{
    wait_as (FUTEX_WAIT, word, value, ms);
}

void futex_wake (atomic_uint *word)
{
    syscall (SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void futex_wake_shared (atomic_uint *word)
{
    syscall (SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

long elapsed (const struct timespec *then)
{
    struct timespec now;

    clock_gettime (CLOCK_MONOTONIC, &now);
    return (now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}
