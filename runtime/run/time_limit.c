/* SPDX-License-Identifier: Apache-2.0 */
/* Request a stop before the job reaches its time limit. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/run/run.h"

enum { MARGIN = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t thread;
static int users;
static bool running, last;
static double end, margin, save;

/* A worker watches the time itself and decides what to do next. */
static bool has_limit (void)
{
    const char *limit = getenv ("SLURM_JOB_END_TIME");
    const char *wish = getenv ("DL_STOP_MARGIN");

    if (!limit || (getenv ("DL_ATTEMPT_DIR") && !wish))
        return false;
    end = strtod (limit, NULL);
    margin = wish ? strtod (wish, NULL) : MARGIN;
    return end > 0 && margin >= 0;
}

static void *watch (void *arg)
{
    struct timespec when = { 0 };

    pthread_mutex_lock (&lock);
    while (!last) {
        double at = end - margin - 2 * save;
        when.tv_sec = at > 0 ? (time_t)at : 0;
        if (pthread_cond_timedwait (&changed, &lock, &when) == ETIMEDOUT) {
            stop_by_time_limit ();
            break;
        }
    }
    pthread_mutex_unlock (&lock);
    return arg;
}

void time_limit_open (void)
{
    pthread_mutex_lock (&lock);
    if (users++ == 0) {
        last = false;
        save = 0;
        running = has_limit () && pthread_create (&thread, NULL, watch, NULL) == 0;
    }
    pthread_mutex_unlock (&lock);
}

void time_limit_saved (double seconds)
{
    pthread_mutex_lock (&lock);
    save = seconds;
    pthread_cond_broadcast (&changed);
    pthread_mutex_unlock (&lock);
}

void time_limit_close (void)
{
    bool wait = false;

    pthread_mutex_lock (&lock);
    if (--users == 0 && running) {
        last = wait = true;
        running = false;
        pthread_cond_broadcast (&changed);
    }
    pthread_mutex_unlock (&lock);
    if (wait)
        pthread_join (thread, NULL);
}
