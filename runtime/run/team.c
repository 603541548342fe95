/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks of a run meet and tell each other things through files. */
#include "runtime/run/team.h"
#include "runtime/clock.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "runtime/crc32c.h"
#include "runtime/error.h"
#include "runtime/member.h"
#include "runtime/message.h"
#include "runtime/run/run.h"

enum { TIMEOUT = 600 };

/* A disk that is full, or a server that is away, may be better soon: so long a
 * message is tried again (s), and an error is not believed.
 */
enum { PATIENCE = 3 };

struct welcome {
    uint64_t session;
    char dir[PATH_MAX]; /* of rank 0's attempt */
};

struct team {
    char dir[PATH_MAX - 128];
    long rank, size;
    struct welcome at;
    struct member self;
    struct member *members;
    double timeout;
    unsigned counts[TEAM_COUNTS];
};

/* A thread that saves and the program may both come to meet the others. */
static pthread_mutex_t meeting = PTHREAD_MUTEX_INITIALIZER;

/* ---- to wait ---- */

/* A client of a network file system may remember for long that a name was not
 * there; to read the folder anew makes it ask.
 */
static void read_folder (const char *dir)
{
    DIR *d = opendir (dir);

    while (d && readdir (d))
        ;
    if (d)
        closedir (d);
}

struct waiting {
    double begin, end, last;
    long us;
};

static struct waiting wait_begin (const struct team *t, double extra)
{
    double begin = monotonic ();

    return (struct waiting){ begin, begin + t->timeout + extra, begin, 100 };
}

/* Sleep a little; false when the time is over. */
static bool wait_more (struct waiting *w)
{
    struct timespec t = { 0, w->us * 1000 };

    if (monotonic () > w->end)
        return false;
    nanosleep (&t, NULL);
    if (w->us < 7000)
        w->us += w->us / 2;
    return true;
}

static int gone (long rank, const struct member *m, struct slurmdl_error *err)
{
    errno = ESRCH;
    return errorf (err,
                   "rank %ld (process %lld) has ended, and did not take part",
                   rank,
                   (long long)m->pid);
}

static int late (const struct team *t,
                 long rank,
                 const struct waiting *w,
                 struct slurmdl_error *err)
{
    errno = ETIMEDOUT;
    return errorf (err,
                   "rank %ld of %ld did not come in %.0f s (DL_RANK_TIMEOUT); "
                   "look whether it hangs, and whether all ranks see %s",
                   rank,
                   t->size,
                   w->end - w->begin,
                   t->dir);
}

static int put_patiently (const char *path, const void *data, size_t n)
{
    struct timespec pause = { 0, 100 * 1000 * 1000 };
    double end = monotonic () + PATIENCE;
    int rv;

    while ((rv = message_put (path, data, n)) < 0 && monotonic () < end)
        nanosleep (&pause, NULL);
    return rv;
}

/* ---- to meet ---- */

static void
path_of (const struct team *t, char *buf, const char *name, long rank)
{
    snprintf (buf, PATH_MAX, "%s/%s.%ld", t->dir, name, rank);
}

/* Look at hello.R again: 1 if it is another than before. */
static int look_at_hello (struct team *t, long rank)
{
    char path[PATH_MAX];
    void *data;
    size_t n;
    int rv = 0;

    path_of (t, path, "hello", rank);
    if (message_get (path, &data, &n) < 0)
        return 0;
    if (n == sizeof (struct member)
        && memcmp (data, &t->members[rank], sizeof (struct member))) {
        memcpy (&t->members[rank], data, sizeof (struct member));
        rv = 1;
    }
    free (data);
    return rv;
}

static int put_welcome (struct team *t)
{
    size_t n = sizeof (t->at) + (size_t)t->size * sizeof (*t->members);
    char *text = malloc (n);
    char path[PATH_MAX];
    int rv;

    if (!text)
        return -1;
    memcpy (text, &t->at, sizeof (t->at));
    memcpy (text + sizeof (t->at), t->members, n - sizeof (t->at));
    path_of (t, path, "welcome", 0);
    rv = put_patiently (path, text, n);
    free (text);
    return rv;
}

/* A rank may have found the hello of its forerunner still there. */
static void welcome_again (struct team *t)
{
    int changed = 0;

    pthread_mutex_lock (&meeting);
    for (long r = 1; r < t->size; r++)
        changed += look_at_hello (t, r);
    if (changed)
        put_welcome (t);
    pthread_mutex_unlock (&meeting);
}

/* Of an earlier run that was killed.  Ranks of one run that are on one machine
 * begin within a second.
 */
static bool is_forerunner (const struct team *t, const struct member *m)
{
    return m->start + (uint64_t)sysconf (_SC_CLK_TCK) < t->self.start
           && member_has_ended (m, &t->self);
}

/* Who waits for us must be able to look whether we have ended. */
static int say_hello (struct team *t, struct slurmdl_error *err)
{
    char path[PATH_MAX];

    path_of (t, path, "hello", t->rank);
    if (put_patiently (path, &t->self, sizeof (t->self)) == 0)
        return 0;
    return errorf (err, "%s: cannot write: %s", t->dir, strerror (errno));
}

static int gather (struct team *t, struct slurmdl_error *err)
{
    struct waiting w = wait_begin (t, 0);

    if (say_hello (t, err) < 0)
        return -1;
    for (long r = 1; r < t->size; r++)
        while (t->members[r].nonce == 0) {
            if (look_at_hello (t, r) && !is_forerunner (t, &t->members[r]))
                break;
            memset (&t->members[r], 0, sizeof (t->members[r]));
            read_folder (t->dir);
            if (!wait_more (&w))
                return late (t, r, &w, err);
        }
    if (put_welcome (t) == 0)
        return 0;
    return errorf (err, "%s: cannot write: %s", t->dir, strerror (errno));
}

/* Whether this welcome knows us. */
static bool accept_welcome (struct team *t, const void *data, size_t n)
{
    const char *text = data;
    struct member us;

    if (n != sizeof (t->at) + (size_t)t->size * sizeof (us))
        return false;
    memcpy (&us,
            text + sizeof (t->at) + (size_t)t->rank * sizeof (us),
            sizeof (us));
    if (us.nonce != t->self.nonce)
        return false;
    memcpy (&t->at, text, sizeof (t->at));
    memcpy (t->members, text + sizeof (t->at), n - sizeof (t->at));
    return true;
}

static bool hear_welcome (struct team *t)
{
    char path[PATH_MAX];
    void *data;
    size_t n;
    bool rv;

    path_of (t, path, "welcome", 0);
    if (message_get (path, &data, &n) < 0)
        return false;
    rv = accept_welcome (t, data, n);
    free (data);
    return rv;
}

/* Whoever was there beside us is of our run, however early it began. */
static bool rank0_has_ended (struct team *t, bool *met)
{
    struct member *m = &t->members[0];

    if (look_at_hello (t, 0))
        *met = false;
    if (!member_has_ended (m, &t->self)) {
        *met = m->pid != 0;
        return false;
    }
    return *met || !is_forerunner (t, m);
}

static int come (struct team *t, struct slurmdl_error *err)
{
    struct waiting w = wait_begin (t, 0);
    bool ended = false, met = false;

    if (say_hello (t, err) < 0)
        return -1;
    while (!hear_welcome (t)) {
        if (ended)
            return gone (0, &t->members[0], err);
        read_folder (t->dir);
        if (!wait_more (&w))
            return late (t, 0, &w, err);
        if (monotonic () - w.last < 0.1)
            continue;
        w.last = monotonic ();
        /* it may have put it just before; so look once more */
        ended = rank0_has_ended (t, &met);
    }
    return 0;
}

/* Under a worker an attempt has its own folder; else what the launcher of the
 * ranks says tells runs in one folder apart.
 */
static void name_folder (struct team *t, const struct slurmdl *run)
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
    snprintf (t->dir,
              sizeof (t->dir),
              "%s/.ranks.%08x",
              getenv ("DL_ATTEMPT_DIR") ? run->dir : run->trial_dir,
              crc);
}

static double timeout (void)
{
    const char *text = getenv ("DL_RANK_TIMEOUT");
    double v = text ? strtod (text, NULL) : 0;

    return v > 0 ? v : TIMEOUT;
}

static int join (struct slurmdl *run, struct slurmdl_error *err)
{
    struct team *t;
    int rv;

    if (run->team)
        return 0;
    if (!(t = calloc (1, sizeof (*t)))
        || !(t->members = calloc ((size_t)run->size, sizeof (*t->members)))) {
        free (t);
        return errorf (err, "out of memory");
    }
    t->rank = run->rank;
    t->size = run->size;
    t->timeout = timeout ();
    name_folder (t, run);
    member_describe (&t->self);
    if (mkdir (t->dir, 0777) < 0 && errno != EEXIST)
        rv = errorf (err, "%s: cannot make: %s", t->dir, strerror (errno));
    else if (t->rank == 0) {
        t->at.session = t->self.nonce;
        snprintf (t->at.dir, sizeof (t->at.dir), "%s", run->dir);
        t->members[0] = t->self;
        rv = gather (t, err);
    } else
        rv = come (t, err);
    if (rv < 0) {
        int e = errno;
        free (t->members);
        free (t);
        errno = e;
        return -1;
    }
    run->team = t;
    return 0;
}

int team_join (struct slurmdl *run, struct slurmdl_error *err)
{
    int rv;

    pthread_mutex_lock (&meeting);
    rv = join (run, err);
    pthread_mutex_unlock (&meeting);
    return rv;
}

unsigned team_count (struct team *t, enum team_count what)
{
    return t->counts[what]++;
}

/* ---- messages ---- */

static void
message_path (const struct team *t, char *buf, const char *name, long rank)
{
    snprintf (buf,
              PATH_MAX,
              "%s/%016llx.%s.%ld",
              t->dir,
              (unsigned long long)t->at.session,
              name,
              rank);
}

int team_put (struct team *t, const char *name, const void *data, size_t n)
{
    char path[PATH_MAX];

    message_path (t, path, name, t->rank);
    return put_patiently (path, data, n);
}

int team_look (
    struct team *t, long from, const char *name, void **data, size_t *n)
{
    char path[PATH_MAX];

    message_path (t, path, name, from);
    if (message_get (path, data, n) == 0)
        return 1;
    return errno == ENOENT || errno == ESTALE ? 0 : -1;
}

struct wish {
    const char *name;
    team_enough_f enough; /* NULL: anything is */
    const void *arg;
    double extra;
};

static int
look (struct team *t, long from, const struct wish *w, void **data, size_t *n)
{
    int rv = team_look (t, from, w->name, data, n);

    if (rv == 1 && w->enough && !w->enough (*data, *n, w->arg)) {
        free (*data);
        *data = NULL;
        return 0;
    }
    return rv;
}

static int wait_for (struct team *t,
                     long from,
                     const struct wish *wish,
                     void **data,
                     size_t *n,
                     struct slurmdl_error *err)
{
    struct waiting w = wait_begin (t, wish->extra);
    double bad = 0; /* since when there is an error */
    bool ended = false;
    int rv;

    while ((rv = look (t, from, wish, data, n)) <= 0) {
        if (rv == 0)
            bad = 0;
        else if (bad == 0)
            bad = monotonic ();
        else if (monotonic () - bad > PATIENCE)
            break;
        if (ended)
            return gone (from, &t->members[from], err);
        if (!wait_more (&w))
            return late (t, from, &w, err);
        if (w.us < 5000 || monotonic () - w.last < 0.1)
            continue;
        w.last = monotonic ();
        read_folder (t->dir);
        if (t->rank == 0)
            welcome_again (t);
        /* it may have put it just before; so look once more */
        ended = member_has_ended (&t->members[from], &t->self);
    }
    return rv > 0 ? 0
                  : errorf (err,
                            "%s: cannot read what rank %ld says: %s",
                            t->dir,
                            from,
                            strerror (errno));
}

int team_get (struct team *t,
              long from,
              const char *name,
              double extra,
              void **data,
              size_t *n,
              struct slurmdl_error *err)
{
    struct wish w = { .name = name, .extra = extra };

    return wait_for (t, from, &w, data, n, err);
}

int team_wait (struct team *t,
               long from,
               const char *name,
               team_enough_f enough,
               const void *arg,
               void **data,
               size_t *n,
               struct slurmdl_error *err)
{
    struct wish w = { name, enough, arg, 0 };

    return wait_for (t, from, &w, data, n, err);
}

void team_forget (struct team *t, const char *name)
{
    char path[PATH_MAX];

    for (long r = 0; r < t->size; r++) {
        message_path (t, path, name, r);
        unlink (path);
    }
}

/* ---- to leave ---- */

static void empty_folder (const char *dir)
{
    char path[PATH_MAX];
    struct dirent *e;
    DIR *d = opendir (dir);

    while (d && (e = readdir (d)))
        if (strcmp (e->d_name, ".") && strcmp (e->d_name, "..")) {
            snprintf (path, sizeof (path), "%s/%.255s", dir, e->d_name);
            unlink (path);
        }
    if (d)
        closedir (d);
    rmdir (dir);
}

/* Who is the last to say so cleans up: the others need nothing more. */
void team_destroy (struct team *t)
{
    bool all = true;
    void *data;
    size_t n;

    if (!t)
        return;
    team_put (t, "bye", "", 0);
    for (long r = 0; all && r < t->size; r++) {
        all = team_look (t, r, "bye", &data, &n) == 1;
        if (all)
            free (data);
    }
    if (all)
        empty_folder (t->dir);
    free (t->members);
    free (t);
}
