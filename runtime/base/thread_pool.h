/* SPDX-License-Identifier: Apache-2.0 */
/* Run one function in several threads. */
#pragma once

enum { THREAD_POOL_MAX = 8 };

/* Number of cores of this process, at most 'most' (<= THREAD_POOL_MAX). */
long thread_pool_size (long most);

/* Call 'f' in this thread and in n - 1 others, or as many as can be started,
 * and wait until all have returned.
 */
void thread_pool_run (long n, void *(*f) (void *), void *arg);
