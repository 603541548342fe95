/* SPDX-License-Identifier: Apache-2.0 */
/* Register, beat, claim, and judge who is alive. */
#include "launcher/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "launcher/put.h"
#include "runtime/error.h"

enum { FILE_MAX = 64 << 10, COUNTER_SIZE = 21 };

/* A worker's file is not read more often, s. */
static const double look_every = 1;

static const char gone[] = "gone                \n";

/* What this process remembers of a claim that is not its own ... */
struct claim {
    long trial;
    long attempt;
    char nonce[33];
};

/* ... and of another worker. */
struct other {
    char nonce[33];
    char counter[COUNTER_SIZE + 1];
    double since; /* the counter has not changed */
    double looked;
    bool dead;
    bool before; /* at the slot of this process */
};

struct peer {
    struct peer_self self;
    char *dir;
    int fd;
    off_t offset; /* of the counter */
    unsigned long long count;
    char host[65];
    char boot[40];
    char pidns[40];
    struct claim *claims;
    size_t nclaims;
    struct other *others;
    size_t nothers;
};

double monotonic (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- who this process is ---- */

static void read_line (char *buf, size_t size, const char *path)
{
    int fd = open (path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read (fd, buf, size - 1);

    if (fd >= 0)
        close (fd);
    buf[n > 0 ? n : 0] = '\0';
    buf[strcspn (buf, "\n")] = '\0';
}

/* When the process started, in ticks since boot: tells a reused pid. */
static unsigned long long start_of (long pid)
{
    unsigned long long start = 0;
    char path[64];
    char stat[1024];
    const char *p;

    snprintf (path, sizeof (path), "/proc/%ld/stat", pid);
    read_line (stat, sizeof (stat), path);
    if ((p = strrchr (stat, ')')))
        for (int field = 2; *p; p++)
            if (*p == ' ' && ++field == 22) {
                start = strtoull (p + 1, NULL, 10);
                break;
            }
    return start;
}

static void know_thyself (struct peer *p, const char *slot)
{
    unsigned long long r[2] = { 0 };
    ssize_t n;

    if (getrandom (r, sizeof (r), 0) != sizeof (r))
        r[0] = (unsigned long long)getpid ();
    snprintf (
        p->self.nonce, sizeof (p->self.nonce), "%016llx%016llx", r[0], r[1]);
    snprintf (p->self.slot, sizeof (p->self.slot), "%s", slot);
    gethostname (p->host, sizeof (p->host) - 1);
    read_line (p->boot, sizeof (p->boot), "/proc/sys/kernel/random/boot_id");
    n = readlink ("/proc/self/ns/pid", p->pidns, sizeof (p->pidns) - 1);
    p->pidns[n > 0 ? n : 0] = '\0';
}

static void
worker_path (char *buf, size_t size, const struct peer *p, const char *nonce)
{
    snprintf (buf, size, "%s/workers/%s", p->dir, nonce);
}

static int put_self (struct peer *p, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char *text = NULL;
    json_t *o = json_pack ("{s:s, s:s, s:s, s:s, s:I, s:I}",
                           "slot",
                           p->self.slot,
                           "host",
                           p->host,
                           "boot",
                           p->boot,
                           "pidns",
                           p->pidns,
                           "pid",
                           (json_int_t)getpid (),
                           "start",
                           (json_int_t)start_of (getpid ()));
    char *line = json_dumps (o, JSON_COMPACT);
    int rv = -1;

    json_decref (o);
    if (line && asprintf (&text, "%s\n%020llu\n", line, 0ULL) > 0) {
        worker_path (path, sizeof (path), p, p->self.nonce);
        p->offset = (off_t)strlen (line) + 1;
        rv = put_if_absent (path, text, strlen (text), err);
        if (rv == 0 && (p->fd = put_open (path, O_WRONLY)) < 0)
            rv = errorf (err, "%s: %s", path, strerror (errno));
    }
    free (line);
    free (text);
    return rv;
}

struct peer *
peer_create (const char *dir, const char *slot, struct slurmdl_error *err)
{
    struct peer *p = calloc (1, sizeof (*p));

    if (!p || !(p->dir = strdup (dir))) {
        free (p);
        errorf (err, "out of memory");
        return NULL;
    }
    p->fd = -1;
    know_thyself (p, slot);
    if (put_self (p, err) == 0)
        return p;
    peer_destroy (p);
    return NULL;
}

void peer_destroy (struct peer *p)
{
    int e = errno;

    if (!p)
        return;
    if (p->fd >= 0) {
        if (pwrite (p->fd, gone, COUNTER_SIZE, p->offset) < 0)
            p->count = 0; /* then the others wait for the lease */
        close (p->fd);
    }
    free (p->claims);
    free (p->others);
    free (p->dir);
    free (p);
    errno = e;
}

const struct peer_self *peer_self (const struct peer *p)
{
    return &p->self;
}

int peer_beat (struct peer *p, struct slurmdl_error *err)
{
    char text[COUNTER_SIZE + 1];

    snprintf (text, sizeof (text), "%020llu\n", ++p->count);
    if (pwrite (p->fd, text, COUNTER_SIZE, p->offset) == COUNTER_SIZE)
        return 0;
    return errorf (err,
                   "%s/workers/%s: cannot write: %s",
                   p->dir,
                   p->self.nonce,
                   strerror (errno));
}

/* ---- claims ---- */

static void claim_path (
    char *buf, size_t size, const struct peer *p, long trial, long attempt)
{
    snprintf (buf, size, "%s/trials/%04ld/claim.%ld", p->dir, trial, attempt);
}

static struct claim *find_claim (struct peer *p, long trial, long attempt)
{
    for (size_t i = 0; i < p->nclaims; i++)
        if (p->claims[i].trial == trial && p->claims[i].attempt == attempt)
            return &p->claims[i];
    return NULL;
}

static void read_nonce (char *buf, size_t size, const char *path)
{
    char *text = put_read (path, FILE_MAX, NULL, NULL);
    json_t *o = text ? json_loads (text, 0, NULL) : NULL;

    snprintf (buf,
              size,
              "%s",
              json_string_value (json_object_get (o, "nonce")) ?: "");
    json_decref (o);
    free (text);
}

/* Remember whose claim it is; a trial's older claim makes room. */
static struct claim *learn_claim (struct peer *p, long trial, long attempt)
{
    char path[PATH_MAX];
    struct claim *c = NULL;

    for (size_t i = 0; i < p->nclaims && !c; i++)
        if (p->claims[i].trial == trial)
            c = &p->claims[i];
    if (!c) {
        c = realloc (p->claims, (p->nclaims + 1) * sizeof (*c));
        if (!c)
            return NULL;
        p->claims = c;
        c += p->nclaims++;
    }
    *c = (struct claim){ .trial = trial, .attempt = attempt };
    claim_path (path, sizeof (path), p, trial, attempt);
    read_nonce (c->nonce, sizeof (c->nonce), path);
    return c;
}

static int put_claim (struct peer *p,
                      long trial,
                      long attempt,
                      int64_t length,
                      struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char text[256];

    snprintf (path, sizeof (path), "%s/trials/%04ld", p->dir, trial);
    if (put_folder (path, err) < 0)
        return -1;
    claim_path (path, sizeof (path), p, trial, attempt);
    snprintf (text,
              sizeof (text),
              "{\"trial\":%ld,\"attempt\":%ld,\"length\":%lld,"
              "\"slot\":\"%s\",\"nonce\":\"%s\"}\n",
              trial,
              attempt,
              (long long)length,
              p->self.slot,
              p->self.nonce);
    return put_if_absent (path, text, strlen (text), err);
}

int peer_claim (struct peer *p,
                long trial,
                long attempt,
                int64_t length,
                struct slurmdl_error *err)
{
    char path[PATH_MAX];
    int rv;

    if (find_claim (p, trial, attempt))
        return 1;
    /* a look is cheaper than a try; only "it is there" counts */
    claim_path (path, sizeof (path), p, trial, attempt);
    rv = access (path, F_OK) == 0 ? 1
                                  : put_claim (p, trial, attempt, length, err);
    if (rv == 1)
        learn_claim (p, trial, attempt);
    return rv;
}

const char *peer_claimant (struct peer *p, long trial, long attempt)
{
    struct claim *c = find_claim (p, trial, attempt);
    char path[PATH_MAX];

    claim_path (path, sizeof (path), p, trial, attempt);
    if (!c && access (path, F_OK) == 0)
        c = learn_claim (p, trial, attempt);
    if (c && !*c->nonce)
        read_nonce (c->nonce, sizeof (c->nonce), path);
    return c ? c->nonce : NULL;
}

/* ---- life ---- */

static long long number_in (const json_t *o, const char *name)
{
    return json_integer_value (json_object_get (o, name));
}

static bool same (const json_t *o, const char *name, const char *text)
{
    const char *value = json_string_value (json_object_get (o, name));

    return value && !strcmp (value, text);
}

/* It was on this machine (since this boot), and its process is no more. */
static bool process_gone (const struct peer *p, const json_t *o)
{
    long pid = (long)number_in (o, "pid");

    return same (o, "host", p->host) && same (o, "boot", p->boot)
           && same (o, "pidns", p->pidns)
           && start_of (pid) != (unsigned long long)number_in (o, "start");
}

/* There is one worker a slot at a time, and now that is this process. */
static bool predecessor (const struct peer *p, const json_t *o)
{
    return same (o, "slot", p->self.slot);
}

static bool silent (struct other *o, const char *counter, int64_t lease)
{
    if (strncmp (o->counter, counter, COUNTER_SIZE)) {
        snprintf (o->counter, sizeof (o->counter), "%s", counter);
        o->since = monotonic ();
    }
    return monotonic () - o->since > (double)lease;
}

/* Its file as JSON, and its counter; NULL if it cannot be read. */
static json_t *
read_worker (const char *dir, const char *nonce, char *counter, size_t size)
{
    char path[PATH_MAX];
    char *text, *second;
    json_t *o = NULL;

    snprintf (path, sizeof (path), "%s/workers/%s", dir, nonce);
    if (!(text = put_read (path, FILE_MAX, NULL, NULL)))
        return NULL;
    if ((second = strchr (text, '\n'))) {
        *second++ = '\0';
        snprintf (counter, size, "%.*s", COUNTER_SIZE - 1, second);
        o = json_loads (text, 0, NULL);
    }
    free (text);
    return o;
}

static bool look_at (struct peer *p, struct other *other, int64_t lease)
{
    char counter[COUNTER_SIZE + 1] = "";
    json_t *o = NULL;
    bool dead;

    if (*other->nonce)
        o = read_worker (p->dir, other->nonce, counter, sizeof (counter));
    other->before = o && predecessor (p, o);
    dead = o
           && (!strncmp (counter, gone, 4) || other->before
               || process_gone (p, o));
    json_decref (o);
    return silent (other, counter, lease) || dead;
}

static struct other *know_other (struct peer *p, const char *nonce)
{
    struct other *list;

    for (size_t i = 0; i < p->nothers; i++)
        if (!strcmp (p->others[i].nonce, nonce))
            return &p->others[i];
    list = realloc (p->others, (p->nothers + 1) * sizeof (*list));
    if (!list)
        return NULL;
    p->others = list;
    list += p->nothers++;
    *list = (struct other){ .since = monotonic (), .looked = -look_every };
    snprintf (list->nonce, sizeof (list->nonce), "%s", nonce);
    return list;
}

/* A worker that has died stays dead: its nonce is its process's. */
bool peer_dead (struct peer *p, const char *nonce, int64_t lease)
{
    struct other *o = know_other (p, nonce);

    if (!o || !strcmp (nonce, p->self.nonce))
        return false;
    if (!o->dead && monotonic () - o->looked >= look_every) {
        o->dead = look_at (p, o, lease);
        o->looked = monotonic ();
    }
    return o->dead;
}

bool peer_preceded (struct peer *p, const char *nonce)
{
    struct other *o = know_other (p, nonce);

    return o && o->before;
}

/* ---- all of them ---- */

static void copy_text (char *to, size_t size, const json_t *o, const char *name)
{
    snprintf (
        to, size, "%s", json_string_value (json_object_get (o, name)) ?: "");
}

static int read_info (struct peer *p, const char *nonce, struct peer_info *info)
{
    json_t *o;

    *info = (struct peer_info){ .gone = false };
    snprintf (info->nonce, sizeof (info->nonce), "%s", nonce);
    o = read_worker (p->dir, nonce, info->counter, sizeof (info->counter));
    if (!o)
        return -1;
    copy_text (info->slot, sizeof (info->slot), o, "slot");
    copy_text (info->host, sizeof (info->host), o, "host");
    info->here = same (o, "host", p->host) && same (o, "boot", p->boot)
                 && same (o, "pidns", p->pidns);
    info->gone = !strncmp (info->counter, gone, 4) || process_gone (p, o);
    json_decref (o);
    return 0;
}

static bool is_nonce (const char *name)
{
    return strlen (name) == 32 && strspn (name, "0123456789abcdef") == 32;
}

static long list_folder (struct peer *p, DIR *folder, struct peer_info **list)
{
    struct dirent *e;
    long n = 0;

    while ((e = readdir (folder))) {
        struct peer_info *more;
        if (!is_nonce (e->d_name))
            continue;
        more = realloc (*list, ((size_t)n + 1) * sizeof (*more));
        if (!more)
            return -1;
        *list = more;
        if (read_info (p, e->d_name, &more[n]) == 0)
            n++;
    }
    return n;
}

long peer_list (const char *dir,
                struct peer_info **list,
                struct slurmdl_error *err)
{
    struct peer p = { .dir = (char *)dir };
    char path[PATH_MAX];
    DIR *folder;
    long n;

    *list = NULL;
    know_thyself (&p, "");
    snprintf (path, sizeof (path), "%s/workers", dir);
    if (!(folder = opendir (path)))
        return errorf (err, "%s: %s", path, strerror (errno));
    n = list_folder (&p, folder, list);
    closedir (folder);
    return n < 0 ? errorf (err, "out of memory") : n;
}

/* Whether it still has the counter that it had. */
static bool stands_still (const char *dir, const struct peer_info *was)
{
    char counter[COUNTER_SIZE + 1] = "";
    json_t *o = read_worker (dir, was->nonce, counter, sizeof (counter));

    json_decref (o);
    return !o || !strcmp (counter, was->counter) || !strncmp (counter, gone, 4);
}

static bool is_elsewhere (const struct peer_info *i)
{
    return !i->gone && !i->here;
}

long peer_count (const char *dir, double seconds, struct slurmdl_error *err)
{
    struct peer_info *list;
    long n = peer_list (dir, &list, err);
    long alive = 0;
    bool ask = false;

    for (long i = 0; i < n; i++)
        ask |= is_elsewhere (&list[i]);
    if (ask && seconds > 0)
        usleep ((useconds_t)(seconds * 1e6));
    for (long i = 0; i < n; i++)
        alive += !list[i].gone
                 && !(seconds > 0 && is_elsewhere (&list[i])
                      && stands_still (dir, &list[i]));
    free (list);
    return n < 0 ? -1 : alive;
}
