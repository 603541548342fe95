/* SPDX-License-Identifier: Apache-2.0 */
/* Start a thread of the library's own beside the program's. */
#pragma once

#include <pthread.h>

/* All signals are blocked in it: they are the program's business.  Returns 0,
 * or -1 with errno; the caller joins or detaches it.
 */
int thread_start (pthread_t *thread, void *(*f) (void *), void *arg);
