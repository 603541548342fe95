/* SPDX-License-Identifier: Apache-2.0 */
/* Workers as seen by each other: registration, heartbeats, claims, who is dead. */
#include "launcher/sweep/peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "launcher/sweep/event.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/clock.h"
#include "runtime/base/environment.h"
#include "runtime/base/error.h"
#include "runtime/base/process_id.h"
#include "runtime/storage/inside.h"

enum { PEER_FILE_MAX = 64 << 10, COUNTER_SIZE = 21 };

/* Replaces the counter when a worker ends; the time follows. */
#define PEER_GONE "gone"

/* What this process remembers about a claim of another worker ... */
struct claim {
    long trial;
    long attempt;
    char nonce[33];
};

/* ... and about another worker. */
struct other {
    char nonce[33];
    char counter[COUNTER_SIZE + 1];
    double since; /* when the counter last changed */
    double looked;
    bool dead;
    bool before; /* at the slot of this process */
    bool after;  /* the same, since Slurm requeued the job of this process */
};

struct peer_membership {
    struct peer_self self;
    char *dir;
    int fd;
    off_t offset; /* of the counter */
    unsigned long long count;
    char host[65];
    char boot[40];
    char pidns[40];
    long long requeues; /* how often the job had been requeued */
    struct claim *claims;
    size_t nclaims;
    struct other *others;
    size_t nothers;
    size_t alive; /* of them */
};

/* ---- who this process is ---- */

bool peer_is_nonce (const char *text)
{
    return strlen (text) == 32 && strspn (text, "0123456789abcdef") == 32;
}

/* Fill in who this process is. */
static void peer_describe (struct peer_membership *p, const char *slot)
{
    unsigned long long r[2] = { 0 };
    ssize_t n;

    if (getrandom (r, sizeof (r), 0) != sizeof (r))
        r[0] = (unsigned long long)getpid ();
    snprintf (p->self.nonce, sizeof (p->self.nonce), "%016llx%016llx", r[0], r[1]);
    snprintf (p->self.slot, sizeof (p->self.slot), "%s", slot);
    gethostname (p->host, sizeof (p->host) - 1);
    p->requeues = environment_number ("SLURM_RESTART_COUNT", 0);
    word_make_fit (p->self.slot);
    word_make_fit (p->host);
    process_boot_id (p->boot, sizeof (p->boot));
    n = readlink ("/proc/self/ns/pid", p->pidns, sizeof (p->pidns) - 1);
    p->pidns[n > 0 ? n : 0] = '\0';
}

static void worker_path (char *buf, size_t size, const struct peer_membership *p, const char *nonce)
{
    snprintf (buf, size, "%s/workers/%s", p->dir, nonce);
}

/* The file was created a moment ago; a second hard link would mean that it is another one. */
static int open_own_file (const char *path)
{
    int fd = file_open (path, O_WRONLY);
    struct stat st;

    if (fd < 0 || (fstat (fd, &st) == 0 && st.st_nlink == 1))
        return fd;
    close (fd);
    errno = EPERM;
    return -1;
}

/* The next count: ms of this machine's clock, so that people can see when it was written, but
 * always more than the last one, even if the clock is set back.
 */
static unsigned long long count_on (struct peer_membership *p)
{
    unsigned long long now = (unsigned long long)(event_clock () * 1000);

    return p->count = now > p->count ? now : p->count + 1;
}

static int register_self (struct peer_membership *p, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char *text;
    json_t *o =
        json_pack ("{s:s, s:s, s:s, s:s, s:I, s:I, s:f, s:I}", "slot", p->self.slot, "host",
                   p->host, "boot", p->boot, "pidns", p->pidns, "pid", (json_int_t)getpid (),
                   "start", (json_int_t)process_start ("/proc", getpid ()), "time", event_clock (),
                   "requeues", (json_int_t)p->requeues);
    char *line = json_dumps (o, JSON_COMPACT | JSON_REAL_PRECISION (15));
    int rv;

    json_decref (o);
    if (!line)
        out_of_memory ();
    text = xasprintf ("%s\n%020llu\n", line, count_on (p));
    worker_path (path, sizeof (path), p, p->self.nonce);
    p->offset = (off_t)strlen (line) + 1;
    rv = publish_if_absent (path, text, strlen (text), err);
    if (rv == 0 && (p->fd = open_own_file (path)) < 0)
        rv = errorf (err, "%s: %s", path, strerror (errno));
    free (line);
    free (text);
    return rv;
}

struct peer_membership *peer_create (const char *dir, const char *slot, struct slurmdl_error *err)
{
    struct peer_membership *p = xcalloc (1, sizeof (*p));

    p->dir = xstrdup (dir);
    p->fd = -1;
    peer_describe (p, slot);
    if (register_self (p, err) == 0)
        return p;
    peer_destroy (p);
    return NULL;
}

void peer_destroy (struct peer_membership *p)
{
    int e = errno;
    char text[COUNTER_SIZE + 1];

    if (!p)
        return;
    if (p->fd >= 0) {
        snprintf (text, sizeof (text), PEER_GONE " %-15llu\n", count_on (p));
        if (pwrite (p->fd, text, COUNTER_SIZE, p->offset) < 0)
            p->count = 0; /* then the others wait for the lease */
        close (p->fd);
    }
    free (p->claims);
    free (p->others);
    free (p->dir);
    free (p);
    errno = e;
}

const struct peer_self *peer_self (const struct peer_membership *p)
{
    return &p->self;
}

int peer_beat (struct peer_membership *p, struct slurmdl_error *err)
{
    char text[COUNTER_SIZE + 1];

    snprintf (text, sizeof (text), "%020llu\n", count_on (p));
    if (pwrite (p->fd, text, COUNTER_SIZE, p->offset) == COUNTER_SIZE)
        return 0;
    return errorf (err, "%s/workers/%s: cannot write: %s", p->dir, p->self.nonce, strerror (errno));
}

/* ---- claims ---- */

static void path_of_claim (char *buf, size_t size, const struct peer_membership *p, long trial,
                           long attempt)
{
    snprintf (buf, size, "%s/trials/%04ld/claim.%ld", p->dir, trial, attempt);
}

static struct claim *find_claim (struct peer_membership *p, long trial, long attempt)
{
    for (size_t i = 0; i < p->nclaims; i++)
        if (p->claims[i].trial == trial && p->claims[i].attempt == attempt)
            return &p->claims[i];
    return NULL;
}

static void read_nonce (char *buf, size_t size, const char *path)
{
    char *text = file_read_now (path, PEER_FILE_MAX, NULL, NULL, NULL);
    json_t *o = text ? json_loads (text, 0, NULL) : NULL;
    const char *nonce = json_string_value (json_object_get (o, "nonce"));

    snprintf (buf, size, "%s", nonce && peer_is_nonce (nonce) ? nonce : "");
    json_decref (o);
    free (text);
}

/* Remember whose claim it is, in place of the trial's previous one. */
static struct claim *learn_claim (struct peer_membership *p, long trial, long attempt)
{
    char path[PATH_MAX];
    struct claim *c = NULL;

    for (size_t i = 0; i < p->nclaims && !c; i++)
        if (p->claims[i].trial == trial)
            c = &p->claims[i];
    if (!c) {
        XGROW (p->claims, p->nclaims);
        c = &p->claims[p->nclaims++];
    }
    *c = (struct claim){ .trial = trial, .attempt = attempt };
    path_of_claim (path, sizeof (path), p, trial, attempt);
    read_nonce (c->nonce, sizeof (c->nonce), path);
    return c;
}

static enum claimed put_claim (struct peer_membership *p, long trial, long attempt, int64_t length,
                               struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char text[320];
    int rv;

    snprintf (path, sizeof (path), "%s/trials/%04ld", p->dir, trial);
    if (folder_create (path, err) < 0)
        return CLAIM_FAILED;
    path_of_claim (path, sizeof (path), p, trial, attempt);
    snprintf (text, sizeof (text),
              "{\"trial\":%ld,\"attempt\":%ld,\"length\":%lld,"
              "\"slot\":\"%s\",\"nonce\":\"%s\",\"time\":%.3f}\n",
              trial, attempt, (long long)length, p->self.slot, p->self.nonce, event_clock ());
    rv = publish_if_absent (path, text, strlen (text), err);
    return rv == LINK_FAILED ? CLAIM_FAILED : rv == LINK_TAKEN ? CLAIM_TAKEN : CLAIM_OURS;
}

enum claimed peer_claim (struct peer_membership *p, long trial, long attempt, int64_t length,
                         struct slurmdl_error *err)
{
    char path[PATH_MAX];
    enum claimed rv;

    if (find_claim (p, trial, attempt))
        return CLAIM_TAKEN;
    /* checking is cheaper than trying; a negative answer may be stale and proves nothing */
    path_of_claim (path, sizeof (path), p, trial, attempt);
    rv = access (path, F_OK) == 0 ? CLAIM_TAKEN : put_claim (p, trial, attempt, length, err);
    if (rv == CLAIM_TAKEN)
        learn_claim (p, trial, attempt);
    return rv;
}

const char *peer_claimant (struct peer_membership *p, long trial, long attempt)
{
    struct claim *c = find_claim (p, trial, attempt);
    char path[PATH_MAX];

    path_of_claim (path, sizeof (path), p, trial, attempt);
    if (!c && access (path, F_OK) == 0)
        c = learn_claim (p, trial, attempt);
    if (c && !*c->nonce)
        read_nonce (c->nonce, sizeof (c->nonce), path);
    return c ? c->nonce : NULL;
}

/* ---- who is dead ---- */

/* Seconds between two reads of a worker's file, at least ... */
static const double peer_every = 1;

/* ... and the most files that are read in a second.  Among a thousand workers, each would otherwise
 * do little else, and never win the race for an entry.
 */
enum { LOOKS_MAX = 8 };

static long long number_member (const json_t *o, const char *name)
{
    return json_integer_value (json_object_get (o, name));
}

static bool member_equals (const json_t *o, const char *name, const char *text)
{
    const char *value = json_string_value (json_object_get (o, name));

    return value && !strcmp (value, text);
}

/* Whether it was a process of this machine (since this boot) that no longer exists. */
static bool process_gone (const struct peer_membership *p, const json_t *o)
{
    return member_equals (o, "host", p->host) && member_equals (o, "boot", p->boot)
           && member_equals (o, "pidns", p->pidns)
           && process_has_ended ("/proc", number_member (o, "pid"),
                                 (uint64_t)number_member (o, "start"));
}

/* A slot has one worker at a time.  If its job was requeued because its host did not answer, both
 * workers may live: the one with fewer requeues has lost the slot.
 */
static void compare_slots (const struct peer_membership *p, const json_t *o, struct other *other)
{
    bool same = o && member_equals (o, "slot", p->self.slot);
    bool later = number_member (o, "requeues") > p->requeues;

    other->before = same && !later;
    other->after = same && later;
}

static bool counter_stands (struct other *o, const char *counter, int64_t lease)
{
    if (strncmp (o->counter, counter, COUNTER_SIZE)) {
        snprintf (o->counter, sizeof (o->counter), "%s", counter);
        o->since = monotonic ();
    }
    return monotonic () - o->since > (double)lease;
}

/* A worker's file as JSON, and its counter; NULL if it cannot be read. */
static json_t *read_worker (const char *dir, const char *nonce, char *counter, size_t size)
{
    struct slurmdl_error why = { "" };
    char path[PATH_MAX];
    char *text, *second;
    json_t *o = NULL;

    snprintf (path, sizeof (path), "%s/workers/%s", dir, nonce);
    /* a file that is not visible yet is read the next time */
    if (!(text = file_read_now (path, PEER_FILE_MAX, NULL, NULL, &why))) {
        if (errno == EBADMSG)
            complain ("%s", why.text);
        return NULL;
    }
    if ((second = strchr (text, '\n'))) {
        *second++ = '\0';
        snprintf (counter, size, "%.*s", COUNTER_SIZE - 1, second);
        o = json_loads (text, 0, NULL);
    }
    free (text);
    return o;
}

static bool check_worker (struct peer_membership *p, struct other *other, int64_t lease)
{
    char counter[COUNTER_SIZE + 1] = "";
    json_t *o = NULL;
    bool dead;

    if (*other->nonce)
        o = read_worker (p->dir, other->nonce, counter, sizeof (counter));
    compare_slots (p, o, other);
    dead = o
           && (!strncmp (counter, PEER_GONE, strlen (PEER_GONE)) || other->before
               || process_gone (p, o));
    json_decref (o);
    return counter_stands (other, counter, lease) || dead;
}

/* p->alive also counts workers that have ended normally. */
static double look_interval (const struct peer_membership *p, int64_t lease)
{
    double interval = fmin ((double)p->alive / LOOKS_MAX, (double)lease / 4);

    return fmax (interval, peer_every);
}

/* A fictitious time of the last check: with few workers the next one is due now, with many at a
 * random time within the interval.
 */
static double first_turn (const struct peer_membership *p, const char *nonce, int64_t lease)
{
    unsigned random = 0;

    if (p->alive <= LOOKS_MAX)
        return -peer_every;
    sscanf (nonce, "%4x", &random);
    return monotonic () - look_interval (p, lease) * random / 65536;
}

static struct other *know_other (struct peer_membership *p, const char *nonce, int64_t lease)
{
    struct other *new;

    for (size_t i = 0; i < p->nothers; i++)
        if (!strcmp (p->others[i].nonce, nonce))
            return &p->others[i];
    XGROW (p->others, p->nothers);
    new = &p->others[p->nothers++];
    p->alive++;
    *new = (struct other){ .since = monotonic (), .looked = first_turn (p, nonce, lease) };
    snprintf (new->nonce, sizeof (new->nonce), "%s", nonce);
    return new;
}

/* A dead worker stays dead, because a nonce belongs to one process. */
bool peer_dead (struct peer_membership *p, const char *nonce, int64_t lease)
{
    struct other *o = know_other (p, nonce, lease);

    if (!strcmp (nonce, p->self.nonce))
        return false;
    if (!o->dead && monotonic () - o->looked >= look_interval (p, lease)) {
        o->dead = check_worker (p, o, lease);
        o->looked = monotonic ();
        p->alive -= o->dead;
    }
    return o->dead;
}

bool peer_preceded (struct peer_membership *p, const char *nonce)
{
    for (size_t i = 0; i < p->nothers; i++)
        if (!strcmp (p->others[i].nonce, nonce))
            return p->others[i].before;
    return false;
}

bool peer_follows (struct peer_membership *p, const char *nonce)
{
    for (size_t i = 0; i < p->nothers; i++)
        if (!strcmp (p->others[i].nonce, nonce))
            return p->others[i].after;
    return false;
}

/* Dead workers are not checked again, so 'looked' is when this one was found dead. */
double peer_dead_since (const struct peer_membership *p, const char *nonce)
{
    for (size_t i = 0; i < p->nothers; i++)
        if (p->others[i].dead && !strcmp (p->others[i].nonce, nonce))
            return monotonic () - p->others[i].looked;
    return 0;
}

/* ---- all workers ---- */

static void copy_member (char *to, size_t size, const json_t *o, const char *name)
{
    snprintf (to, size, "%s", json_string_value (json_object_get (o, name)) ?: "");
}

/* When the worker wrote a counter, in s since the epoch on its clock; 0: not known. */
static double counter_time (const char *counter)
{
    size_t gone = strncmp (counter, PEER_GONE, strlen (PEER_GONE)) ? 0 : strlen (PEER_GONE);

    return (double)strtoull (counter + gone, NULL, 10) / 1000;
}

static int read_info (struct peer_membership *p, const char *nonce, struct peer_info *info)
{
    json_t *o;

    *info = (struct peer_info){ .gone = false };
    snprintf (info->nonce, sizeof (info->nonce), "%s", nonce);
    o = read_worker (p->dir, nonce, info->counter, sizeof (info->counter));
    if (!o)
        return -1;
    copy_member (info->slot, sizeof (info->slot), o, "slot");
    copy_member (info->host, sizeof (info->host), o, "host");
    if (!word_fits (info->slot) || !word_fits (info->host)) {
        complain ("%s/workers/%s: no worker has such a slot and host; it is ignored", p->dir,
                  nonce);
        json_decref (o);
        return -1;
    }
    info->here = member_equals (o, "host", p->host) && member_equals (o, "boot", p->boot)
                 && member_equals (o, "pidns", p->pidns);
    info->requeues = number_member (o, "requeues");
    info->begin = json_number_value (json_object_get (o, "time"));
    info->end = counter_time (info->counter);
    info->gone = !strncmp (info->counter, PEER_GONE, strlen (PEER_GONE)) || process_gone (p, o);
    json_decref (o);
    return 0;
}

static long list_folder (struct peer_membership *p, DIR *folder, struct peer_info **list)
{
    struct dirent *e;
    long n = 0;

    while ((e = readdir (folder))) {
        if (!peer_is_nonce (e->d_name))
            continue;
        XGROW (*list, (size_t)n);
        if (read_info (p, e->d_name, &(*list)[n]) == 0)
            n++;
    }
    return n;
}

int peer_slot (const struct peer_membership *p, const char *nonce, char *slot, size_t size)
{
    char counter[COUNTER_SIZE + 1];
    json_t *o = read_worker (p->dir, nonce, counter, sizeof (counter));

    *slot = '\0';
    if (o)
        copy_member (slot, size, o, "slot");
    json_decref (o);
    return *slot ? 0 : -1;
}

long peer_list (const char *dir, struct peer_info **list, struct slurmdl_error *err)
{
    struct peer_membership p = { .dir = (char *)dir };
    char path[PATH_MAX];
    DIR *folder;
    long n;
    int fd;

    *list = NULL;
    peer_describe (&p, "");
    snprintf (path, sizeof (path), "%s/workers", dir);
    fd = inside_open (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (!(folder = fd < 0 ? NULL : fdopendir (fd)))
        return errorf (err, "%s: %s", path, inside_error (errno));
    n = list_folder (&p, folder, list);
    closedir (folder);
    return n;
}

/* Whether its counter is still the same. */
static bool stands_still (const char *dir, const struct peer_info *was)
{
    char counter[COUNTER_SIZE + 1] = "";
    json_t *o = read_worker (dir, was->nonce, counter, sizeof (counter));

    json_decref (o);
    return !o || !strcmp (counter, was->counter)
           || !strncmp (counter, PEER_GONE, strlen (PEER_GONE));
}

static bool runs_elsewhere (const struct peer_info *i)
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
        ask |= runs_elsewhere (&list[i]);
    if (ask && seconds > 0)
        usleep ((useconds_t)(seconds * 1e6));
    for (long i = 0; i < n; i++)
        alive += !list[i].gone
                 && !(seconds > 0 && runs_elsewhere (&list[i]) && stands_still (dir, &list[i]));
    free (list);
    return n < 0 ? -1 : alive;
}
