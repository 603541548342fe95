/* SPDX-License-Identifier: Apache-2.0 */
/* Open the checkpoint that an argument of dl ckpt names. */
#include "launcher/ckpt/open.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

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

struct slurmdl_checkpoint *ckpt_open (const char *path, int *rv)
{
    struct slurmdl_checkpoint *c;
    struct slurmdl_error err = { "" };
    char *found = NULL;
    struct stat st;

    if (stat (path, &st) == 0 && S_ISDIR (st.st_mode)
        && !(found = newest_in (path))) {
        complain ("%s: no checkpoint in this folder passes verification", path);
        *rv = EXIT_NOT_FOUND;
        return NULL;
    }
    c = slurmdl_checkpoint_open (found ? found : path, &err);
    if (!c)
        *rv = fail (&err);
    free (found);
    return c;
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
