/* SPDX-License-Identifier: Apache-2.0 */
/* Open the checkpoint that an argument of dl ckpt names. */
#include "launcher/ckpt/open.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/say.h"

/* A trial's folder, or an attempt's, of which the trial's is meant. */
static char *newest_in (const char *dir)
{
    int64_t step;
    char *path = slurmdl_checkpoint_find (dir, INT64_MAX, 0, &step);
    char *trial;

    if (path || asprintf (&trial, "%s/..", dir) < 0)
        return path;
    path = slurmdl_checkpoint_find (trial, INT64_MAX, 0, &step);
    free (trial);
    return path;
}

static int no_checkpoint (const char *dir)
{
    char trials[PATH_MAX];

    snprintf (trials, sizeof (trials), "%s/trials", dir);
    if (access (trials, F_OK) == 0)
        complain ("%s: is an experiment; name the folder of a trial: %s/NNNN",
                  dir,
                  trials);
    else
        complain ("%s: no checkpoint in this folder passes verification", dir);
    return EXIT_NOT_FOUND;
}

struct slurmdl_checkpoint *ckpt_open (const char *path, int *rv)
{
    struct slurmdl_checkpoint *c;
    struct slurmdl_error err = { "" };
    char *found = NULL;
    struct stat st;

    if (stat (path, &st) == 0 && S_ISDIR (st.st_mode)
        && !(found = newest_in (path))) {
        *rv = no_checkpoint (path);
        return NULL;
    }
    c = slurmdl_checkpoint_open (found ? found : path, &err);
    if (!c)
        *rv = fail (&err);
    free (found);
    return c;
}

/* a.K/ckpt/STEP.h5 */
static int is_part (const struct dirent *e)
{
    size_t digits = strspn (e->d_name, "0123456789");

    return !strcmp (e->d_name, "ckpt") || !strncmp (e->d_name, "a.", 2)
           || (digits && !strcmp (e->d_name + digits, ".h5"));
}

enum { LEVELS = 3 };

static size_t look_into (const char *dir,
                         int level,
                         void (*f) (const char *path, void *arg),
                         void *arg)
{
    struct dirent **list;
    int n = scandir (dir, &list, is_part, versionsort);
    size_t found = 0;

    for (int i = 0; i < n; i++) {
        char *path;
        if (asprintf (&path, "%s/%s", dir, list[i]->d_name) >= 0) {
            if (strspn (list[i]->d_name, "0123456789")) {
                f (path, arg);
                found++;
            } else if (level > 1)
                found += look_into (path, level - 1, f, arg);
            free (path);
        }
        free (list[i]);
    }
    if (n >= 0)
        free (list);
    return found;
}

size_t
ckpt_each (const char *path, void (*f) (const char *path, void *arg), void *arg)
{
    struct stat st;

    if (stat (path, &st) == 0 && S_ISDIR (st.st_mode))
        return look_into (path, LEVELS, f, arg);
    f (path, arg);
    return 1;
}

void ckpt_shape (char *buf, size_t size, const struct slurmdl_tensor *t)
{
    size_t at = (size_t)snprintf (buf, size, "[");

    for (int i = 0; i < t->ndims && at < size; i++)
        at += (size_t)snprintf (
            buf + at, size - at, "%s%" PRIu64, i ? ", " : "", t->dims[i]);
    if (at < size)
        snprintf (buf + at, size - at, "]");
}
