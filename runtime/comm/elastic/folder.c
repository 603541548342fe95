/* SPDX-License-Identifier: Apache-2.0 */
/* The files through which processes agree on the members of a generation. */
#include "runtime/comm/elastic/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/array.h"
#include "runtime/base/error.h"
#include "runtime/storage/link.h"
#include "runtime/storage/whole_file.h"

/* ---- files ---- */

static void sign_path (char *buf, const char *dir, const char *kind, uint64_t generation)
{
    snprintf (buf, PATH_MAX, "%s/%s.%llu", dir, kind, (unsigned long long)generation);
}

static void member_path (char *buf, const char *dir, uint64_t generation, uint64_t nonce)
{
    if (generation)
        snprintf (buf, PATH_MAX, "%s/member.%llu.%016llx", dir, (unsigned long long)generation,
                  (unsigned long long)nonce);
    else
        snprintf (buf, PATH_MAX, "%s/ask.%016llx", dir, (unsigned long long)nonce);
}

/* Whether its strings are terminated, whoever wrote them. */
static bool is_sane (const struct elastic_member *s)
{
    return memchr (s->host, '\0', sizeof (s->host)) && memchr (s->unit, '\0', sizeof (s->unit))
           && memchr (s->self.boot, '\0', sizeof (s->self.boot));
}

int folder_put_member (const char *dir, uint64_t generation, const struct elastic_member *s)
{
    char path[PATH_MAX];

    member_path (path, dir, generation, s->self.nonce);
    return message_put (path, s, sizeof (*s));
}

void folder_take_ask (const char *dir, uint64_t nonce)
{
    folder_take_member (dir, 0, nonce);
}

void folder_take_member (const char *dir, uint64_t generation, uint64_t nonce)
{
    char path[PATH_MAX];

    member_path (path, dir, generation, nonce);
    unlink (path);
}

enum link_result folder_put_generation (const char *dir, const struct generation *w)
{
    char path[PATH_MAX];
    char tmp[PATH_MAX];
    enum link_result linked;

    sign_path (path, dir, "world", w->number);
    link_tmp_name (tmp, sizeof (tmp), path);
    if (message_put (tmp, w, sizeof (*w) + (size_t)w->size * sizeof (*w->members)) < 0)
        return LINK_FAILED;
    linked = link_if_absent (tmp, path);
    if (linked != LINKED)
        unlink (tmp);
    return linked;
}

static bool has_sane_members (const struct generation *w)
{
    for (int64_t i = 0; i < w->size; i++)
        if (!is_sane (&w->members[i]))
            return false;
    return true;
}

struct generation *folder_get_generation (const char *dir, uint64_t generation)
{
    char path[PATH_MAX];
    struct generation *w;
    void *data;
    size_t n;

    sign_path (path, dir, "world", generation);
    if (message_get (path, &data, &n) < 0)
        return NULL;
    w = data;
    if (n >= sizeof (*w) && w->size > 0 && w->number == generation
        && (n - sizeof (*w)) / sizeof (*w->members) == (size_t)w->size && has_sane_members (w))
        return w;
    free (data);
    errno = EBADMSG;
    return NULL;
}

void folder_take_generation (const char *dir, uint64_t generation)
{
    char path[PATH_MAX];

    sign_path (path, dir, "world", generation);
    unlink (path);
}

int folder_put_empty (const char *dir, const char *name)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/%s", dir, name);
    return message_put (path, "", 0);
}

int membership_put_ended (const char *dir, const char *unit)
{
    char name[64];

    snprintf (name, sizeof (name), "ended.%.31s", unit);
    return folder_put_empty (dir, name);
}

int membership_put_target (const char *dir, long ranks)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/target", dir);
    return message_put (path, &ranks, sizeof (ranks));
}

long membership_target (const char *dir)
{
    char path[PATH_MAX];
    void *data;
    size_t n;
    long ranks = 0;

    snprintf (path, sizeof (path), "%s/target", dir);
    if (message_get (path, &data, &n) < 0)
        return 0;
    if (n == sizeof (ranks))
        memcpy (&ranks, data, n);
    free (data);
    return ranks;
}

/* ---- reading the folder ---- */

static struct sign *find_sign (const struct signs *v, uint64_t generation, uint64_t n)
{
    for (long i = 0; i < v->nsigns; i++)
        if (v->signs[i].nonce == n && v->signs[i].generation == generation)
            return &v->signs[i];
    return NULL;
}

static int read_sign_member (const char *dir, struct sign *s)
{
    char path[PATH_MAX];
    void *data;
    size_t n;
    int rv = -1;

    member_path (path, dir, s->generation, s->nonce);
    if (message_get (path, &data, &n) < 0)
        return -1;
    if (n == sizeof (s->member)) {
        memcpy (&s->member, data, n);
        rv = is_sane (&s->member) ? 0 : -1;
    }
    free (data);
    return rv;
}

static int add_sign (struct signs *v, const char *dir, uint64_t generation, uint64_t nonce)
{
    struct sign s = { .generation = generation, .nonce = nonce, .seen = true };
    struct sign *known = find_sign (v, generation, nonce);
    struct sign *list;

    if (known) {
        known->seen = true;
        return 0;
    }
    /* it was removed meanwhile */
    if (read_sign_member (dir, &s) < 0)
        return 0;
    if (!(list = array_grow (v->signs, v->nsigns, sizeof (*list))))
        return -1;
    v->signs = list;
    list[v->nsigns++] = s;
    return 0;
}

static int add_bye (struct signs *v, uint64_t nonce)
{
    uint64_t *list = array_grow (v->byes, v->nbyes, sizeof (*list));

    if (!list)
        return -1;
    v->byes = list;
    list[v->nbyes++] = nonce;
    return 0;
}

static int add_ended (struct signs *v, const char *unit)
{
    char (*list)[32] = array_grow (v->ended, v->nended, sizeof (*list));

    if (!list)
        return -1;
    v->ended = list;
    snprintf (list[v->nended++], sizeof (*list), "%.31s", unit);
    return 0;
}

static int read_sign (struct signs *v, const char *dir, const char *name)
{
    unsigned long long g, nonce;

    if (sscanf (name, "member.%llu.%llx", &g, &nonce) == 2 && g > 0)
        return add_sign (v, dir, g, nonce);
    if (sscanf (name, "ask.%llx", &nonce) == 1)
        return add_sign (v, dir, 0, nonce);
    if (sscanf (name, "world.%llu", &g) == 1 && g > v->highest)
        v->highest = g;
    if (sscanf (name, "bye.%llx", &nonce) == 1)
        return add_bye (v, nonce);
    if (!strncmp (name, "ended.", 6))
        return add_ended (v, name + 6);
    if (!strcmp (name, "target"))
        v->target = membership_target (dir);
    return 0;
}

/* Forget entries that their processes have withdrawn. array_grow() needs only the
 * number, and the room never shrinks below that.
 */
static void forget_withdrawn (struct signs *v)
{
    long n = 0;

    for (long i = 0; i < v->nsigns; i++)
        if (v->signs[i].seen)
            v->signs[n++] = v->signs[i];
    v->nsigns = n;
}

int signs_look (struct signs *v, const char *dir, struct slurmdl_error *err)
{
    DIR *d = opendir (dir);
    struct dirent *e;
    int rv = 0;

    if (!d)
        return errorf (err, "%s: %s", dir, strerror (errno));
    for (long i = 0; i < v->nsigns; i++)
        v->signs[i].seen = false;
    v->highest = 0;
    v->nbyes = v->nended = v->target = 0;
    free (v->byes);
    free (v->ended);
    v->byes = NULL;
    v->ended = NULL;
    while (rv == 0 && (e = readdir (d)))
        rv = read_sign (v, dir, e->d_name);
    closedir (d);
    forget_withdrawn (v);
    return rv < 0 ? errorf (err, "out of memory") : 0;
}

void signs_free (struct signs *v)
{
    free (v->signs);
    free (v->byes);
    free (v->ended);
    memset (v, 0, sizeof (*v));
}

const struct sign *signs_find (const struct signs *v, uint64_t generation, uint64_t nonce)
{
    return find_sign (v, generation, nonce);
}

long signs_count (const struct signs *v, uint64_t generation)
{
    long n = 0;

    for (long i = 0; i < v->nsigns; i++)
        n += v->signs[i].generation == generation;
    return n;
}

bool signs_has_bye (const struct signs *v, uint64_t nonce)
{
    for (long i = 0; i < v->nbyes; i++)
        if (v->byes[i] == nonce)
            return true;
    return false;
}

bool signs_is_over (const struct signs *v, const struct elastic_member *s,
                    const struct elastic_member *self)
{
    if (signs_has_bye (v, s->self.nonce) || process_id_has_ended (&s->self, &self->self))
        return true;
    for (long i = 0; *s->unit && i < v->nended; i++)
        if (!strcmp (v->ended[i], s->unit))
            return true;
    return false;
}

long signs_waiting (const struct signs *v, const struct elastic_member *self, uint64_t next)
{
    long n = 0;

    for (long i = 0; i < v->nsigns; i++)
        n += v->signs[i].generation == 0 && (next == 0 || !signs_find (v, next, v->signs[i].nonce))
             && !signs_is_over (v, &v->signs[i].member, self);
    return n;
}
