/* SPDX-License-Identifier: Apache-2.0 */
/* Judge which workers are alive. */
#include "launcher/sweep/liveness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/array.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/process_id.h"
#include "runtime/storage/inside.h"

/* A worker's file is not read more often, s ... */
static const double look_every = 1;

/* ... nor more files a second: of a thousand workers each would do little
 * else, and never be the first to put what it decides.
 */
enum { LOOKS_MAX = 8 };

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
static bool process_gone (const struct peer_membership *p, const json_t *o)
{
    return same (o, "host", p->host) && same (o, "boot", p->boot) && same (o, "pidns", p->pidns)
           && process_has_ended ("/proc", number_in (o, "pid"), (uint64_t)number_in (o, "start"));
}

/* There is one worker a slot at a time, and now that is this process. */
static bool predecessor (const struct peer_membership *p, const json_t *o)
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
static json_t *read_worker (const char *dir, const char *nonce, char *counter, size_t size)
{
    struct slurmdl_error why = { "" };
    char path[PATH_MAX];
    char *text, *second;
    json_t *o = NULL;

    snprintf (path, sizeof (path), "%s/workers/%s", dir, nonce);
    /* one that is not seen yet is asked for at the next look */
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

static bool look_at (struct peer_membership *p, struct other *other, int64_t lease)
{
    char counter[COUNTER_SIZE + 1] = "";
    json_t *o = NULL;
    bool dead;

    if (*other->nonce)
        o = read_worker (p->dir, other->nonce, counter, sizeof (counter));
    other->before = o && predecessor (p, o);
    dead = o && (!strncmp (counter, PEER_GONE, 4) || other->before || process_gone (p, o));
    json_decref (o);
    return silent (other, counter, lease) || dead;
}

/* Workers that have ended without owing anything are in the number too. */
static double look_interval (const struct peer_membership *p, int64_t lease)
{
    double interval = fmin ((double)p->alive / LOOKS_MAX, (double)lease / 4);

    return fmax (interval, look_every);
}

/* When it was looked at last, so that it is its turn now, if there are few, or
 * at any time of the interval.
 */
static double first_turn (const struct peer_membership *p, const char *nonce, int64_t lease)
{
    unsigned random = 0;

    if (p->alive <= LOOKS_MAX)
        return -look_every;
    sscanf (nonce, "%4x", &random);
    return monotonic () - look_interval (p, lease) * random / 65536;
}

static struct other *know_other (struct peer_membership *p, const char *nonce, int64_t lease)
{
    struct other *list;

    for (size_t i = 0; i < p->nothers; i++)
        if (!strcmp (p->others[i].nonce, nonce))
            return &p->others[i];
    list = array_grow (p->others, p->nothers, sizeof (*list));
    if (!list)
        return NULL;
    p->others = list;
    list += p->nothers++;
    p->alive++;
    *list = (struct other){ .since = monotonic (), .looked = first_turn (p, nonce, lease) };
    snprintf (list->nonce, sizeof (list->nonce), "%s", nonce);
    return list;
}

/* A worker that has died stays dead: its nonce is its process's. */
bool peer_dead (struct peer_membership *p, const char *nonce, int64_t lease)
{
    struct other *o = know_other (p, nonce, lease);

    if (!o || !strcmp (nonce, p->self.nonce))
        return false;
    if (!o->dead && monotonic () - o->looked >= look_interval (p, lease)) {
        o->dead = look_at (p, o, lease);
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

/* The dead are not looked at again. */
double peer_dead_since (const struct peer_membership *p, const char *nonce)
{
    for (size_t i = 0; i < p->nothers; i++)
        if (p->others[i].dead && !strcmp (p->others[i].nonce, nonce))
            return monotonic () - p->others[i].looked;
    return 0;
}

/* ---- all of them ---- */

static void copy_text (char *to, size_t size, const json_t *o, const char *name)
{
    snprintf (to, size, "%s", json_string_value (json_object_get (o, name)) ?: "");
}

static int read_info (struct peer_membership *p, const char *nonce, struct peer_info *info)
{
    json_t *o;

    *info = (struct peer_info){ .gone = false };
    snprintf (info->nonce, sizeof (info->nonce), "%s", nonce);
    o = read_worker (p->dir, nonce, info->counter, sizeof (info->counter));
    if (!o)
        return -1;
    copy_text (info->slot, sizeof (info->slot), o, "slot");
    copy_text (info->host, sizeof (info->host), o, "host");
    if (!word_fits (info->slot) || !word_fits (info->host)) {
        complain ("%s/workers/%s: no worker has such a slot and host; it is "
                  "passed over",
                  p->dir, nonce);
        json_decref (o);
        return -1;
    }
    info->here =
        same (o, "host", p->host) && same (o, "boot", p->boot) && same (o, "pidns", p->pidns);
    info->gone = !strncmp (info->counter, PEER_GONE, 4) || process_gone (p, o);
    json_decref (o);
    return 0;
}

static long list_folder (struct peer_membership *p, DIR *folder, struct peer_info **list)
{
    struct dirent *e;
    long n = 0;

    while ((e = readdir (folder))) {
        struct peer_info *more;
        if (!peer_is_nonce (e->d_name))
            continue;
        more = array_grow (*list, (size_t)n, sizeof (*more));
        if (!more)
            return -1;
        *list = more;
        if (read_info (p, e->d_name, &more[n]) == 0)
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
        copy_text (slot, size, o, "slot");
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
    return n < 0 ? errorf (err, "out of memory") : n;
}

/* Whether it still has the counter that it had. */
static bool stands_still (const char *dir, const struct peer_info *was)
{
    char counter[COUNTER_SIZE + 1] = "";
    json_t *o = read_worker (dir, was->nonce, counter, sizeof (counter));

    json_decref (o);
    return !o || !strcmp (counter, was->counter) || !strncmp (counter, PEER_GONE, 4);
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
                 && !(seconds > 0 && is_elsewhere (&list[i]) && stands_still (dir, &list[i]));
    free (list);
    return n < 0 ? -1 : alive;
}
