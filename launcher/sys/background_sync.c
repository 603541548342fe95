/* SPDX-License-Identifier: Apache-2.0 */
/* fsync a folder in a thread while the caller does something else. */
#include "launcher/sys/background_sync.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "runtime/base/futex.h"
#include "runtime/base/thread.h"
#include "runtime/storage/link.h"

struct background_sync {
    pthread_t thread;
    atomic_uint asked;    /* number of syncs requested */
    atomic_uint answered; /* number of syncs done */
    atomic_bool closing;
    int fd;
    int error; /* errno of the last sync; 0: success */
};

static void *work (void *arg)
{
    struct background_sync *s = arg;
    unsigned done = 0;

    for (;;) {
        while (atomic_load (&s->asked) == done)
            futex_wait (&s->asked, done, -1);
        if (atomic_load (&s->closing))
            return NULL;
        s->error = link_sync_folder (s->fd) < 0 ? errno : 0;
        atomic_store (&s->answered, ++done);
        futex_wake (&s->answered);
    }
}

struct background_sync *background_sync_create (void)
{
    struct background_sync *s = calloc (1, sizeof (*s));

    if (s && thread_start (&s->thread, work, s) == 0)
        return s;
    free (s);
    return NULL;
}

static void ask_sync_thread (struct background_sync *s)
{
    atomic_fetch_add (&s->asked, 1);
    futex_wake (&s->asked);
}

void background_sync_begin (struct background_sync *s, int fd)
{
    s->fd = fd;
    ask_sync_thread (s);
}

int background_sync_end (struct background_sync *s)
{
    unsigned done;

    while ((done = atomic_load (&s->answered)) != atomic_load (&s->asked))
        futex_wait (&s->answered, done, -1);
    errno = s->error;
    return s->error ? -1 : 0;
}

void background_sync_destroy (struct background_sync *s)
{
    if (!s)
        return;
    background_sync_end (s);
    atomic_store (&s->closing, true);
    ask_sync_thread (s);
    pthread_join (s->thread, NULL);
    free (s);
}
