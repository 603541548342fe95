/* SPDX-License-Identifier: Apache-2.0 */
/* Rendezvous: the ranks of a run find each other through files. */
#include "runtime/run/file_rendezvous.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/crc32c.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/whole_file.h"

enum { TIMEOUT = 600 };

/* A thread that saves and the program may both join. */
static pthread_mutex_t rendezvous_lock = PTHREAD_MUTEX_INITIALIZER;

static void rank_message_path (const struct session *t, char *buf, const char *name, long rank)
{
    snprintf (buf, PATH_MAX, "%s/%s.%ld", t->folder.path, name, rank);
}

/* Read hello.R again.  Returns whether it has changed. */
static bool reread_hello (struct session *t, long rank)
{
    char path[PATH_MAX];
    void *data;
    size_t n;
    bool changed = false;

    rank_message_path (t, path, "hello", rank);
    if (message_get (path, &data, &n) < 0)
        return false;
    if (n == sizeof (struct process_id)
        && memcmp (data, &t->members[rank], sizeof (struct process_id))) {
        memcpy (&t->members[rank], data, sizeof (struct process_id));
        changed = true;
    }
    free (data);
    return changed;
}

static int put_welcome (struct session *t)
{
    size_t n = sizeof (t->at) + (size_t)t->size * sizeof (*t->members);
    char *text = malloc (n);
    char path[PATH_MAX];
    int rv;

    if (!text)
        return -1;
    memcpy (text, &t->at, sizeof (t->at));
    memcpy (text + sizeof (t->at), t->members, n - sizeof (t->at));
    rank_message_path (t, path, "welcome", 0);
    rv = session_put_file (path, text, n);
    free (text);
    return rv;
}

/* Rank 0 may have answered a stale hello, left by a run that was killed. */
void session_welcome_again (struct session *t)
{
    bool changed = false;

    pthread_mutex_lock (&rendezvous_lock);
    for (long r = 1; r < t->size; r++)
        changed |= reread_hello (t, r);
    if (changed)
        put_welcome (t);
    pthread_mutex_unlock (&rendezvous_lock);
}

/* Whether the process belonged to an earlier run that was killed.  On one machine,
 * the ranks of a run start within a second of each other.
 */
static bool is_forerunner (const struct session *t, const struct process_id *m)
{
    return m->start + (uint64_t)sysconf (_SC_CLK_TCK) < t->self.start
           && process_id_has_ended (m, &t->self);
}

/* Ranks that wait for us need our process ID to notice our end. */
static int post_hello (struct session *t, struct slurmdl_error *err)
{
    char path[PATH_MAX];

    rank_message_path (t, path, "hello", t->rank);
    if (session_put_file (path, &t->self, sizeof (t->self)) == 0)
        return 0;
    return errorf (err, "%s: cannot write: %s", t->dir, strerror (errno));
}

static int gather_ranks (struct session *t, struct slurmdl_error *err)
{
    struct waiting w = session_wait_begin (t, 0);

    if (post_hello (t, err) < 0)
        return -1;
    for (long r = 1; r < t->size; r++)
        while (t->members[r].nonce == 0) {
            if (reread_hello (t, r) && !is_forerunner (t, &t->members[r]))
                break;
            memset (&t->members[r], 0, sizeof (t->members[r]));
            session_read_folder (t->folder.path);
            if (!session_wait_more (&w))
                return session_timed_out (t, r, &w, err);
        }
    if (put_welcome (t) == 0)
        return 0;
    return errorf (err, "%s: cannot write: %s", t->dir, strerror (errno));
}

/* Whether this welcome names our process. */
static bool accept_welcome (struct session *t, const void *data, size_t n)
{
    const char *text = data;
    struct process_id us;

    if (n != sizeof (t->at) + (size_t)t->size * sizeof (us))
        return false;
    memcpy (&us, text + sizeof (t->at) + (size_t)t->rank * sizeof (us), sizeof (us));
    if (us.nonce != t->self.nonce)
        return false;
    memcpy (&t->at, text, sizeof (t->at));
    memcpy (t->members, text + sizeof (t->at), n - sizeof (t->at));
    return true;
}

static bool hear_welcome (struct session *t)
{
    char path[PATH_MAX];
    void *data;
    size_t n;
    bool rv;

    rank_message_path (t, path, "welcome", 0);
    if (message_get (path, &data, &n) < 0)
        return false;
    rv = accept_welcome (t, data, n);
    free (data);
    return rv;
}

/* A rank 0 that we have seen alive belongs to our run, however early it started. */
static bool rank0_has_ended (struct session *t, bool *met)
{
    struct process_id *m = &t->members[0];

    if (reread_hello (t, 0))
        *met = false;
    if (!process_id_has_ended (m, &t->self)) {
        *met = m->pid != 0;
        return false;
    }
    return *met || !is_forerunner (t, m);
}

static int join_session (struct session *t, struct slurmdl_error *err)
{
    struct waiting w = session_wait_begin (t, 0);
    bool ended = false, met = false;

    if (post_hello (t, err) < 0)
        return -1;
    while (!hear_welcome (t)) {
        if (ended)
            return session_gone (0, &t->members[0], err);
        session_read_folder (t->folder.path);
        if (!session_wait_more (&w))
            return session_timed_out (t, 0, &w, err);
        if (monotonic () - w.last < 0.1)
            continue;
        w.last = monotonic ();
        /* rank 0 may have written it just before it ended: read once more */
        ended = rank0_has_ended (t, &met);
    }
    return 0;
}

/* Under a worker, each attempt has its own folder.  Otherwise the environment from
 * the launcher tells apart the runs that share a folder.
 */
static void name_session_folder (struct session *t, const struct slurmdl *run)
{
    static const char *const marks[] = {
        "SLURM_JOB_ID",        "SLURM_STEP_ID", "SLURM_RESTART_COUNT",
        "TORCHELASTIC_RUN_ID", "MASTER_ADDR",   "MASTER_PORT",
    };
    uint32_t crc = 0;

    for (size_t i = 0; i < sizeof (marks) / sizeof (*marks); i++) {
        const char *v = getenv (marks[i]) ?: "";
        crc = crc32c (crc, v, strlen (v) + 1);
    }
    snprintf (t->dir, sizeof (t->dir), "%s/.ranks.%08x",
              getenv ("DL_ATTEMPT_DIR") ? run->dir : run->trial_dir, crc);
}

static double rendezvous_timeout (void)
{
    const char *text = getenv ("DL_RANK_TIMEOUT");
    double v = text ? strtod (text, NULL) : 0;

    return v > 0 ? v : TIMEOUT;
}

static int join_ranks (struct slurmdl *run, struct slurmdl_error *err)
{
    struct session *t;
    int rv;

    if (run->session)
        return 0;
    if (!(t = calloc (1, sizeof (*t)))
        || !(t->members = calloc ((size_t)run->size, sizeof (*t->members)))) {
        free (t);
        return errorf (err, "out of memory");
    }
    t->rank = run->rank;
    t->size = run->size;
    t->timeout = rendezvous_timeout ();
    name_session_folder (t, run);
    process_id_describe (&t->self);
    if (own_folder_open (&t->folder, t->dir, 0700, err) < 0)
        rv = -1;
    else if (t->rank == 0) {
        t->at.number = t->self.nonce;
        snprintf (t->at.dir, sizeof (t->at.dir), "%s", run->dir);
        t->members[0] = t->self;
        rv = gather_ranks (t, err);
    } else
        rv = join_session (t, err);
    if (rv < 0) {
        rv = inside_close (t->folder.fd, rv);
        free (t->members);
        free (t);
        return rv;
    }
    run->session = t;
    return 0;
}

int session_join (struct slurmdl *run, struct slurmdl_error *err)
{
    int rv;

    pthread_mutex_lock (&rendezvous_lock);
    rv = join_ranks (run, err);
    pthread_mutex_unlock (&rendezvous_lock);
    return rv;
}
