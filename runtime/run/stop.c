/* SPDX-License-Identifier: Apache-2.0 */
/* Stop requests by signal or because the time limit is near, and the exit of a program that was
 * stopped.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/environment.h"
#include "runtime/run/run.h"

enum { BY_PROGRAM = -1, BY_TIME_LIMIT = -2 };
enum { STOP_WAIT = 300, STOP_MARGIN = 60 };

/* A signal reaches the process and not a run, so its state is global. */
static atomic_int requested; /* 0 if none, or the signal, or one of BY_ */
static atomic_bool told;     /* the program has asked and got the answer */
static atomic_bool complete; /* it saved its last step anyway */
static pid_t process;
static bool first_rank, at_exit;
static pthread_mutex_t stop_lock = PTHREAD_MUTEX_INITIALIZER;
static int stop_users;
static const int stop_signals[] = { SIGTERM, SIGUSR2 };
enum { WATCHED = sizeof (stop_signals) / sizeof (*stop_signals) };
static bool installed[WATCHED];

/* SIGTERM overrides earlier requests: Slurm is ending the job. */
static void request_end (int by)
{
    int none = 0;

    if (by == SIGTERM)
        atomic_store (&requested, by);
    else
        atomic_compare_exchange_strong (&requested, &none, by);
}

static void install (int i)
{
    struct sigaction old;
    struct sigaction ours = { .sa_handler = request_end, .sa_flags = SA_RESTART };

    sigaction (stop_signals[i], NULL, &old);
    installed[i] = !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL;
    if (installed[i])
        sigaction (stop_signals[i], &ours, NULL);
}

static void remove_handler (int i)
{
    struct sigaction now;
    struct sigaction none = { .sa_handler = SIG_DFL };

    sigaction (stop_signals[i], NULL, &now);
    /* leave a handler that the program has installed since */
    if (installed[i] && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == request_end)
        sigaction (stop_signals[i], &none, NULL);
    installed[i] = false;
}

/* A worker and dl elastic handle the exit of their ranks themselves. */
static bool is_batch_job (void)
{
    return getenv ("SLURM_JOB_ID") && !strcmp (environment_text ("ENVIRONMENT", ""), "BATCH")
           && !getenv ("DL_ATTEMPT_DIR") && !getenv ("DL_ELASTIC_DIR");
}

/* Slurm requeues a preempted job only if it has to kill it.  Returns true if the
 * wait ran out.  A second signal ends either the process or the wait.
 */
static bool wait_to_be_killed (const char *job)
{
    struct timespec t = { 0 };

    t.tv_sec = (time_t)environment_number ("DL_STOP_WAIT", STOP_WAIT);
    if (t.tv_sec <= 0)
        return true;
    if (first_rank)
        fprintf (stderr,
                 "slurmdl: job %s: stopped by SIGTERM; waiting for Slurm to "
                 "kill and requeue it, %lld s at most (DL_STOP_WAIT)\n",
                 job, (long long)t.tv_sec);
    return nanosleep (&t, NULL) == 0;
}

static const char *stop_name (int by)
{
    return by == SIGTERM ? "SIGTERM" : by == SIGUSR2 ? "SIGUSR2" : "its time limit";
}

/* Not in slurmdl_close(): only at exit is everything written and the status known. */
static void write_exit_status (int status, void *unused)
{
    const char *job = getenv ("SLURM_JOB_ID");
    int by = atomic_load (&requested);

    (void)unused;
    if (status != 0 || !atomic_load (&told) || atomic_load (&complete) || by == 0
        || by == BY_PROGRAM || getpid () != process || !is_batch_job ())
        return;
    fflush (NULL);
    if (by == SIGTERM && !wait_to_be_killed (job))
        return;
    if (first_rank)
        fprintf (stderr,
                 "slurmdl: job %s: stopped by %s before its end, which Slurm "
                 "takes as complete unless the job's script requeues it: scontrol requeue %s\n",
                 job, stop_name (by), job);
}

/* ---- the time limit of the job ---- */

/* Protected by 'lock'. */
static pthread_cond_t limit_changed = PTHREAD_COND_INITIALIZER;
static pthread_t limit_thread;
static bool limit_watched, limit_closing;
static double job_end, stop_margin, save_seconds;

/* A worker watches the time itself and decides what to do next. */
static bool has_time_limit (void)
{
    const char *limit = getenv ("SLURM_JOB_END_TIME");
    const char *wish = getenv ("DL_STOP_MARGIN");

    if (!limit || (getenv ("DL_ATTEMPT_DIR") && !wish))
        return false;
    job_end = strtod (limit, NULL);
    stop_margin = wish ? strtod (wish, NULL) : STOP_MARGIN;
    return job_end > 0 && stop_margin >= 0;
}

static void *await_time_limit (void *arg)
{
    struct timespec when = { 0 };

    pthread_mutex_lock (&stop_lock);
    while (!limit_closing) {
        double at = job_end - stop_margin - 2 * save_seconds;
        when.tv_sec = at > 0 ? (time_t)at : 0;
        if (pthread_cond_timedwait (&limit_changed, &stop_lock, &when) == ETIMEDOUT) {
            request_end (BY_TIME_LIMIT);
            break;
        }
    }
    pthread_mutex_unlock (&stop_lock);
    return arg;
}

void stop_saved (double seconds)
{
    pthread_mutex_lock (&stop_lock);
    save_seconds = seconds;
    pthread_cond_broadcast (&limit_changed);
    pthread_mutex_unlock (&stop_lock);
}

/* ---- of a run ---- */

void stop_open (const struct slurmdl *run)
{
    pthread_mutex_lock (&stop_lock);
    if (stop_users++ == 0) {
        for (int i = 0; i < WATCHED; i++)
            install (i);
        limit_closing = false;
        save_seconds = 0;
        limit_watched =
            has_time_limit () && pthread_create (&limit_thread, NULL, await_time_limit, NULL) == 0;
    }
    first_rank = run->rank == 0;
    process = getpid ();
    if (!at_exit)
        at_exit = on_exit (write_exit_status, NULL) == 0;
    pthread_mutex_unlock (&stop_lock);
}

void stop_reached (const struct slurmdl *run, int64_t step)
{
    if (step >= run->length)
        atomic_store (&complete, true);
}

void stop_close (void)
{
    bool join = false;

    pthread_mutex_lock (&stop_lock);
    if (--stop_users == 0) {
        for (int i = 0; i < WATCHED; i++)
            remove_handler (i);
        join = limit_watched;
        limit_watched = false;
        limit_closing = true;
        pthread_cond_broadcast (&limit_changed);
    }
    pthread_mutex_unlock (&stop_lock);
    if (join)
        pthread_join (limit_thread, NULL);
}

void stop_told (void)
{
    atomic_store_explicit (&told, true, memory_order_relaxed);
}

int slurmdl_should_stop (const struct slurmdl *run)
{
    (void)run;
    if (!atomic_load_explicit (&requested, memory_order_relaxed))
        return 0;
    stop_told ();
    return 1;
}

void slurmdl_request_stop (struct slurmdl *run)
{
    (void)run;
    request_end (BY_PROGRAM);
}
