/* SPDX-License-Identifier: Apache-2.0 */
/* Ask the resolver, which may take long, without waiting for it. */
#include "runtime/comm/bootstrap/resolver.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct lookup {
    atomic_int users; /* the thread, and who has started it */
    atomic_bool known;
    char name[256], address[NI_MAXHOST];
};

static void release (struct lookup *l)
{
    if (atomic_fetch_sub (&l->users, 1) == 1)
        free (l);
}

static void *ask (void *arg)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
    struct addrinfo *list = NULL;
    struct lookup *l = arg;

    if (getaddrinfo (l->name, NULL, &hints, &list) == 0) {
        if (getnameinfo (list->ai_addr, list->ai_addrlen, l->address, sizeof (l->address), NULL, 0,
                         NI_NUMERICHOST)
            == 0)
            atomic_store (&l->known, true);
        freeaddrinfo (list);
    }
    release (l);
    return NULL;
}

struct lookup *lookup_start (const char *name)
{
    struct lookup *l = calloc (1, sizeof (*l));
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;
    int code;

    if (!l)
        return NULL;
    snprintf (l->name, sizeof (l->name), "%s", name);
    atomic_init (&l->users, 2);
    sigfillset (&all);
    pthread_sigmask (SIG_SETMASK, &all, &old);
    pthread_attr_init (&attr);
    pthread_attr_setdetachstate (&attr, PTHREAD_CREATE_DETACHED);
    code = pthread_create (&thread, &attr, ask, l);
    pthread_attr_destroy (&attr);
    pthread_sigmask (SIG_SETMASK, &old, NULL);
    if (code == 0)
        return l;
    free (l);
    return NULL;
}

const char *lookup_answer (const struct lookup *l)
{
    return l && atomic_load (&l->known) ? l->address : NULL;
}

void lookup_leave (struct lookup *l)
{
    int saved = errno;

    if (l)
        release (l);
    errno = saved;
}
