/* SPDX-License-Identifier: Apache-2.0 */
/* Start a thread of the library's own beside the program's. */
#pragma once

#include <pthread.h>

/* Start a thread with all signals blocked: they belong to the program.  Returns
 * 0, or -1 with errno; the caller joins or detaches it.
 */
int thread_start (pthread_t *thread, void *(*f) (void *), void *arg);
