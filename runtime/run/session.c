/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a run exchange messages through files. */
#include "runtime/run/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/run/file_rendezvous.h"
#include "runtime/storage/whole_file.h"

unsigned session_count (struct session *t, enum session_count what)
{
    return t->counts[what]++;
}

static void message_path (const struct session *t, char *buf, const char *name, long rank)
{
    snprintf (buf, PATH_MAX, "%s/%016llx.%s.%ld", t->folder.path, (unsigned long long)t->at.number,
              name, rank);
}

int session_put (struct session *t, const char *name, const void *data, size_t n)
{
    char path[PATH_MAX];

    message_path (t, path, name, t->rank);
    return session_put_file (path, data, n);
}

enum session_poll session_poll (struct session *t, long from, const char *name, void **data,
                                size_t *n)
{
    char path[PATH_MAX];

    message_path (t, path, name, from);
    if (message_get (path, data, n) == 0)
        return SESSION_HAS;
    return errno == ENOENT || errno == ESTALE ? SESSION_NOT_YET : SESSION_FAILED;
}

struct wish {
    const char *name;
    session_enough_f enough; /* NULL: accept any message */
    const void *arg;
    double extra;
};

static enum session_poll poll_wish (struct session *t, long from, const struct wish *w, void **data,
                                    size_t *n)
{
    enum session_poll got = session_poll (t, from, w->name, data, n);

    if (got == SESSION_HAS && w->enough && !w->enough (*data, *n, w->arg)) {
        free (*data);
        *data = NULL;
        return SESSION_NOT_YET;
    }
    return got;
}

static int wait_for_wish (struct session *t, long from, const struct wish *wish, void **data,
                          size_t *n, struct slurmdl_error *err)
{
    struct waiting w = session_wait_begin (t, wish->extra);
    double bad = 0; /* time of the first error in a row, or 0 */
    bool ended = false;
    enum session_poll got;

    while ((got = poll_wish (t, from, wish, data, n)) != SESSION_HAS) {
        if (got == SESSION_NOT_YET)
            bad = 0;
        else if (bad == 0)
            bad = monotonic ();
        else if (monotonic () - bad > RETRY_SECONDS)
            break;
        if (ended)
            return session_gone (from, &t->members[from], err);
        if (!session_wait_more (&w))
            return session_timed_out (t, from, &w, err);
        if (w.us < 5000 || monotonic () - w.last < 0.1)
            continue;
        w.last = monotonic ();
        session_read_folder (t->folder.path);
        if (t->rank == 0)
            session_welcome_again (t);
        /* the rank may have written it just before it ended: poll once more */
        ended = process_id_has_ended (&t->members[from], &t->self);
    }
    if (got == SESSION_HAS)
        return 0;
    return errorf (err, "%s: cannot read the message of rank %ld: %s", t->dir, from,
                   strerror (errno));
}

int session_get (struct session *t, long from, const char *name, double extra, void **data,
                 size_t *n, struct slurmdl_error *err)
{
    struct wish w = { .name = name, .extra = extra };

    return wait_for_wish (t, from, &w, data, n, err);
}

int session_wait (struct session *t, long from, const char *name, session_enough_f enough,
                  const void *arg, void **data, size_t *n, struct slurmdl_error *err)
{
    struct wish w = { name, enough, arg, 0 };

    return wait_for_wish (t, from, &w, data, n, err);
}

void session_forget (struct session *t, const char *name)
{
    char path[PATH_MAX];

    for (long r = 0; r < t->size; r++) {
        message_path (t, path, name, r);
        unlink (path);
    }
}

/* The last rank to leave removes the folder.  No other rank needs it any more. */
void session_destroy (struct session *t)
{
    bool all = true;
    void *data;
    size_t n;

    if (!t)
        return;
    session_put (t, "bye", "", 0);
    for (long r = 0; all && r < t->size; r++) {
        all = session_poll (t, r, "bye", &data, &n) == SESSION_HAS;
        if (all)
            free (data);
    }
    if (all)
        own_folder_remove (&t->folder, t->dir);
    own_folder_close (&t->folder);
    free (t->members);
    free (t);
}
