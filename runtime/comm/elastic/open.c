/* SPDX-License-Identifier: Apache-2.0 */
/* Join the folder of an elastic training, and leave it. */
#include "runtime/comm/elastic/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/base/step_id.h"
#include "runtime/comm/bootstrap/tcp.h"
#include "runtime/comm/net/socket.h"

static double number_option (const char *name, double given, double otherwise)
{
    const char *text = getenv (name);
    double v = given;

    if (v <= 0 && text)
        v = strtod (text, NULL);
    return v > 0 && v < 1e9 ? v : otherwise;
}

/* The name of a folder for the ranks of this step alone. */
static int name_step_folder (char *buf, size_t size)
{
    const char *run = getenv ("DL_RUN_DIR");
    const char *job = getenv ("SLURM_JOB_ID");
    const char *step = step_id ();
    const char *again = getenv ("SLURM_RESTART_COUNT");
    const char *dir = getenv ("DL_ELASTIC_DIR");

    if (dir && *dir)
        return snprintf (buf, size, "%s", dir);
    if (!job || !*step)
        return -1;
    return snprintf (buf, size, "%s/elastic.%s.%s.%s", run && *run ? run : ".", job, step,
                     again ? again : "0");
}

static void describe_member (struct elastic_member *s)
{
    const char *node = getenv ("SLURMD_NODENAME");
    const char *unit = getenv ("DL_ELASTIC_UNIT");
    struct stat st;

    memset (s, 0, sizeof (*s));
    process_id_describe (&s->self);
    if (stat ("/proc/self/ns/net", &st) == 0)
        s->netns = st.st_ino;
    s->was_rank = -1;
    s->local = (int32_t)number_option ("SLURM_LOCALID", 0, 0);
    snprintf (s->unit, sizeof (s->unit), "%.31s", unit ? unit : "");
    if (node && *node)
        snprintf (s->host, sizeof (s->host), "%.63s", node);
    else if (gethostname (s->host, sizeof (s->host) - 1) < 0)
        snprintf (s->host, sizeof (s->host), "localhost");
}

int membership_open (struct membership *g, const struct slurmdl_elastic_options *o,
                     struct slurmdl_error *err)
{
    static const struct slurmdl_elastic_options none;
    long ranks =
        (long)number_option ("SLURM_STEP_NUM_TASKS", 0, number_option ("WORLD_SIZE", 0, 1));
    int n;

    o = o ? o : &none;
    memset (g, 0, sizeof (*g));
    g->folder.fd = -1;
    g->min = (long)number_option ("DL_ELASTIC_MIN", (double)o->min, 1);
    g->max = (long)number_option ("DL_ELASTIC_MAX", (double)o->max, 0);
    g->start = (long)number_option ("DL_ELASTIC_START", 0, (double)ranks);
    g->settle = number_option ("DL_ELASTIC_SETTLE", o->settle, 20);
    g->timeout = number_option ("DL_ELASTIC_TIMEOUT", o->timeout, 600);
    g->wait = number_option ("DL_COMM_TIMEOUT", 0, 300);
    errno = EINVAL;
    if (g->max > 0 && g->max < g->min)
        return errorf (err, "the maximum of %ld ranks is below the minimum of %ld", g->max, g->min);
    n = o->dir ? snprintf (g->dir, sizeof (g->dir), "%s", o->dir)
               : name_step_folder (g->dir, sizeof (g->dir));
    if (n >= (int)sizeof (g->dir)) {
        errno = ENAMETOOLONG;
        return errorf (err, "the path of the folder is too long");
    }
    g->by_hand = n < 1;
    if (!g->by_hand && own_folder_open (&g->folder, g->dir, 0700, err) < 0)
        return -1;
    describe_member (&g->self);
    return 0;
}

int membership_of_comm (struct membership *g, const struct slurmdl_comm *c,
                        struct slurmdl_error *err)
{
    long size = slurmdl_comm_size (c);
    struct generation *w = calloc (1, sizeof (*w) + (size_t)size * sizeof (*w->members));

    if (!w)
        return errorf (err, "out of memory");
    if (size < g->min) {
        free (w);
        errno = EINVAL;
        return errorf (err, "%ld ranks are below the minimum of %ld", size, g->min);
    }
    w->number = g->generation ? g->generation->number + 1 : 1;
    w->kept = g->generation ? size : 0;
    w->size = w->wanted = size;
    free (g->generation);
    g->generation = w;
    g->rank = slurmdl_comm_rank (c);
    return 0;
}

void membership_close (struct membership *g)
{
    listen_close (&g->listener);
    own_folder_close (&g->folder);
    free (g->generation);
    g->generation = NULL;
}

static bool shares_host (const struct elastic_member *a, const struct elastic_member *b)
{
    return a->netns == b->netns && !strcmp (a->self.boot, b->self.boot);
}

static bool is_one_host (const struct generation *w)
{
    for (long r = 1; r < w->size; r++)
        if (!shares_host (&w->members[r], &w->members[0]))
            return false;
    return true;
}

/* On a single host, use loopback: a machine's own name may have no address. */
const char *member_host (const struct generation *w, const struct elastic_member *of,
                         const struct elastic_member *from)
{
    return is_one_host (w) && shares_host (of, from) ? "127.0.0.1" : of->host;
}

void membership_boot_place (const struct membership *g, struct boot_place *p)
{
    const struct generation *w = g->generation;

    memset (p, 0, sizeof (*p));
    p->rank = g->rank;
    p->size = w->size;
    snprintf (p->host, sizeof (p->host), "%s", member_host (w, &w->members[0], &g->self));
    p->port = w->members[0].port;
    if (g->rank == 0)
        p->listener = g->listener;
    memcpy (p->key, w->key, sizeof (p->key));
    snprintf (p->own, sizeof (p->own), "%s", g->self.host);
}

/* A refused connection is an answer too. */
static bool member_answers (const struct membership *g, long rank, double deadline)
{
    const struct elastic_member *s = &g->generation->members[rank];
    const char *host = member_host (g->generation, s, &g->self);
    int fd = socket_connect (host, s->port, deadline);

    if (fd >= 0)
        close (fd);
    return fd >= 0 || errno == ECONNREFUSED;
}

bool membership_is_isolated (const struct membership *g)
{
    const struct generation *w = g->generation;
    double deadline = monotonic () + g->settle / 4;
    long tried = 0;

    /* try distant ranks first: neighbours often share a switch */
    for (long k = 0, step = w->size / 4 + 1; k < w->size; k++) {
        long r = (g->rank + 1 + k % 4 * step + k / 4) % w->size;
        double now = monotonic ();
        if (!strcmp (w->members[r].host, g->self.host))
            continue;
        if (now >= deadline)
            break;
        if (member_answers (g, r, now + 1 < deadline ? now + 1 : deadline))
            return false;
        tried++;
    }
    return tried > 0;
}

void membership_leave (const struct membership *g)
{
    char name[64];

    if (g->by_hand)
        return;
    snprintf (name, sizeof (name), "bye.%016llx", (unsigned long long)g->self.self.nonce);
    folder_put_empty (g->folder.path, name);
}

static bool is_in (const struct generation *w, uint64_t nonce)
{
    for (long r = 0; r < w->size; r++)
        if (w->members[r].self.nonce == nonce)
            return true;
    return false;
}

/* Remove old entries.  A process that did not answer although there was room has to
 * ask again.
 */
void membership_clean (const struct membership *g)
{
    const struct generation *w = g->generation;
    struct signs v = { 0 };

    if (signs_look (&v, g->folder.path, NULL) < 0)
        return;
    for (long i = 0; i < v.nsigns; i++) {
        const struct sign *s = &v.signs[i];
        if (s->generation ? s->generation <= w->number
                          : is_in (w, s->nonce) || w->size < w->wanted
                                || signs_is_over (&v, &s->member, &g->self))
            folder_take_member (g->folder.path, s->generation, s->nonce);
    }
    if (w->number > 2)
        folder_take_generation (g->folder.path, w->number - 2);
    signs_free (&v);
}

bool membership_has_done (const char *dir, const char *unit)
{
    struct signs v = { 0 };
    struct generation *w = NULL;
    bool rv = false;

    if (signs_look (&v, dir, NULL) == 0 && v.highest > 0)
        w = folder_get_generation (dir, v.highest);
    for (long r = 0; w && r < w->size; r++)
        rv |= !strcmp (w->members[r].unit, unit) && signs_has_bye (&v, w->members[r].self.nonce);
    free (w);
    signs_free (&v);
    return rv;
}
