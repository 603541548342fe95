/* SPDX-License-Identifier: Apache-2.0 */
/* Start a thread that handles none of the program's signals. */
#include "runtime/base/thread.h"

#include <errno.h>
#include <signal.h>

int thread_start (pthread_t *thread, void *(*f) (void *), void *arg)
{
    sigset_t all;
    sigset_t before;
    int rc;

    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &before);
    rc = pthread_create (thread, NULL, f, arg);
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    errno = rc;
    return rc ? -1 : 0;
}
