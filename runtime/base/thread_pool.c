/* SPDX-License-Identifier: Apache-2.0 */
/* Run one function in several threads. */
#include "runtime/base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

long thread_pool_size (long most)
{
    cpu_set_t set;

    /* it fails if there are more CPUs than the set can hold */
    if (sched_getaffinity (0, sizeof (set), &set) < 0 || CPU_COUNT (&set) > most)
        return most;
    return CPU_COUNT (&set);
}

void thread_pool_run (long n, void *(*f) (void *), void *arg)
{
    pthread_t threads[THREAD_POOL_MAX];
    long started = 0;

    while (started < n - 1 && started < THREAD_POOL_MAX
           && pthread_create (&threads[started], NULL, f, arg) == 0)
        started++;
    f (arg);
    for (long i = 0; i < started; i++)
        pthread_join (threads[i], NULL);
}
