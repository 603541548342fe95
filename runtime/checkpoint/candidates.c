/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoints that a run could go on from. */
#include "runtime/checkpoint/candidates.h"
#include "runtime/storage/inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"

static void add_candidate (struct candidates *c, const struct candidate *new, const char *dir)
{
    struct candidate *list = realloc (c->list, (c->n + 1) * sizeof (*list));
    struct candidate *at;

    if (!list) {
        c->error = ENOMEM;
        return;
    }
    c->list = list;
    at = &list[c->n];
    *at = *new;
    if (asprintf (&at->path, "%s/a.%ld/ckpt/%08lld.h5", dir, at->attempt, (long long)at->step) >= 0)
        c->n++;
    else
        c->error = ENOMEM;
}

static void no_folder (struct candidates *c, const char *path)
{
    if (c->error)
        return;
    c->error = errno;
    c->where = strdup (path);
}

/* A disk that is not mounted: the link is there, and what it leads to is not.
 */
static bool leads_nowhere (const char *path)
{
    struct stat st;
    bool is = lstat (path, &st) == 0;

    errno = ENOENT;
    return is;
}

/* What is absent, or is no folder of ours, has none. */
static DIR *open_folder (struct candidates *c, const char *path)
{
    int fd = inside_open_any (path, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);

    if (!d
        && (errno == ENOENT ? leads_nowhere (path)
                            : errno != ENOTDIR && errno != ELOOP && errno != EINVAL))
        no_folder (c, path);
    if (!d && fd >= 0)
        close (fd);
    return d;
}

static struct dirent *next_entry (struct candidates *c, DIR *d, const char *path)
{
    struct dirent *e;

    errno = 0;
    if (!(e = readdir (d)) && errno && errno != ENOENT)
        no_folder (c, path);
    return e;
}

static void add_attempt (struct candidates *c, const char *dir, const struct candidate *like,
                         int64_t max_step)
{
    struct candidate new = *like;
    char path[PATH_MAX];
    struct dirent *e;
    char *end;
    DIR *d;

    snprintf (path, sizeof (path), "%s/a.%ld/ckpt", dir, like->attempt);
    if (!(d = open_folder (c, path)))
        return;
    while ((e = next_entry (c, d, path))) {
        new.step = strtoll (e->d_name, &end, 10);
        if (end != e->d_name && !strcmp (end, ".h5") && new.step <= max_step)
            add_candidate (c, &new, dir);
    }
    closedir (d);
}

/* The checkpoints of a trial's attempts. */
static void add_attempts (struct candidates *c, const char *dir, int64_t max_step, long prefer,
                          bool other)
{
    struct candidate like = { .other = other };
    DIR *d = open_folder (c, dir);
    struct dirent *e;

    if (!d)
        return;
    while ((e = next_entry (c, d, dir)))
        if (!strncmp (e->d_name, "a.", 2) && atol (e->d_name + 2) > 0) {
            like.attempt = atol (e->d_name + 2);
            like.prefer = like.attempt == prefer;
            add_attempt (c, dir, &like, max_step);
        }
    closedir (d);
}

/* The newest first. */
static int by_worth (const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;

    if (x->step != y->step)
        return x->step > y->step ? -1 : 1;
    if (x->other != y->other)
        return x->other ? 1 : -1;
    if (x->prefer != y->prefer)
        return x->prefer ? -1 : 1;
    return x->attempt > y->attempt ? -1 : x->attempt < y->attempt;
}

static void sort (struct candidates *c)
{
    if (c->n > 0)
        qsort (c->list, c->n, sizeof (*c->list), by_worth);
}

void candidates_free (struct candidates *c)
{
    for (size_t i = 0; i < c->n; i++)
        free (c->list[i].path);
    free (c->list);
    free (c->where);
}

char *slurmdl_checkpoint_find (const char *dir, int64_t max_step, long prefer, int64_t *step)
{
    struct candidates c = { 0 };
    char *found = NULL;

    add_attempts (&c, dir, max_step, prefer, false);
    sort (&c);
    for (size_t i = 0; i < c.n && !found; i++)
        if (slurmdl_checkpoint_verify (c.list[i].path, step, NULL) == 0 && *step == c.list[i].step)
            found = strdup (c.list[i].path);
    candidates_free (&c);
    if (!found)
        errno = ENOENT;
    return found;
}

/* The checkpoint of another trial that this one is to begin with: the worker
 * names an attempt's folder, TRIAL/a.K, and the length there.
 */
static void add_other (struct candidates *c, const struct slurmdl *run)
{
    const char *dir = getenv ("DL_CHECKPOINT_DIR");
    const char *length = getenv ("DL_CHECKPOINT_LENGTH");
    const char *slash = dir ? strrchr (dir, '/') : NULL;
    char *trial;

    if (!slash || !length || strncmp (slash, "/a.", 3)
        || !(trial = strndup (dir, (size_t)(slash - dir))))
        return;
    if (strcmp (trial, run->trial_dir))
        add_attempts (c, trial, strtoll (length, NULL, 10), atol (slash + 3), true);
    free (trial);
}

int candidates_find (struct candidates *c, const struct slurmdl *run, struct slurmdl_error *err)
{
    const char *prefer = getenv ("DL_CHECKPOINT_ATTEMPT");

    add_attempts (c, run->trial_dir, run->length, prefer ? atol (prefer) : 0, false);
    add_other (c, run);
    sort (c);
    if (!c->error)
        return 0;
    errno = c->error;
    return errorf (err, "%s: cannot look for checkpoints: %s", c->where ? c->where : run->trial_dir,
                   strerror (c->error));
}
