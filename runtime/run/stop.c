/* SPDX-License-Identifier: Apache-2.0 */
/* Stop requests by signal. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "runtime/run/run.h"

/* A signal comes to the process and not to a run: this is its one place. */
static atomic_int requested;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int users;
static const int watched[] = { SIGTERM, SIGUSR2 };
enum { WATCHED = sizeof (watched) / sizeof (*watched) };
static bool installed[WATCHED];

static void request (int sig)
{
    (void)sig;
    atomic_store_explicit (&requested, 1, memory_order_relaxed);
}

static void install (int i)
{
    struct sigaction old;
    struct sigaction ours = { .sa_handler = request, .sa_flags = SA_RESTART };

    sigaction (watched[i], NULL, &old);
    installed[i] = !(old.sa_flags & SA_SIGINFO) && old.sa_handler == SIG_DFL;
    if (installed[i])
        sigaction (watched[i], &ours, NULL);
}

static void remove_handler (int i)
{
    struct sigaction now;
    struct sigaction none = { .sa_handler = SIG_DFL };

    sigaction (watched[i], NULL, &now);
    /* one that the program set meanwhile is the program's */
    if (installed[i] && !(now.sa_flags & SA_SIGINFO)
        && now.sa_handler == request)
        sigaction (watched[i], &none, NULL);
    installed[i] = false;
}

void stop_open (void)
{
    pthread_mutex_lock (&lock);
    if (users++ == 0)
        for (int i = 0; i < WATCHED; i++)
            install (i);
    pthread_mutex_unlock (&lock);
}

void stop_close (void)
{
    pthread_mutex_lock (&lock);
    if (--users == 0)
        for (int i = 0; i < WATCHED; i++)
            remove_handler (i);
    pthread_mutex_unlock (&lock);
}

int slurmdl_should_stop (const struct slurmdl *run)
{
    (void)run;
    return atomic_load_explicit (&requested, memory_order_relaxed);
}

void slurmdl_request_stop (struct slurmdl *run)
{
    (void)run;
    request (0);
}
