/* SPDX-License-Identifier: Apache-2.0 */
/* Make one checkpoint of what the ranks have, and give it its name. */
#include "runtime/checkpoint/commit.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/merge.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/run/session.h"
#include "runtime/storage/io.h"
#include "runtime/storage/link.h"

/* ---- to finish ---- */

int give_name (const char *tmp, const char *path)
{
    int rv = link_if_absent (tmp, path);

    /* a step is saved again only after a restore from an older one: the file
     * of that name is then this attempt's own and out of date */
    return rv == 1 ? link_replace (tmp, path) : rv;
}

/* What was written is there: of a small file all, else the tables. */
static int read_back (const char *tmp, const struct draft *d)
{
    size_t size = d->m.n * sizeof (*d->m.rows);
    struct stat st;
    void *rows;
    int64_t step;
    int rv = -1;

    if (d->length <= SMALL_FILE)
        return slurmdl_checkpoint_verify (tmp, &step, NULL);
    if (fstat (d->fd, &st) < 0 || !(rows = malloc (size + 1)))
        return -1;
    if ((uint64_t)st.st_size == d->length + sizeof (struct trailer)
        && io_read_at (d->fd, rows, size, (off_t)d->m.offset) == 0
        && !memcmp (rows, d->m.rows, size))
        rv = 0;
    free (rows);
    if (rv < 0)
        errno = EIO;
    return rv;
}

int commit_finish (struct merge *g,
                   const char *tmp,
                   const char *path,
                   struct slurmdl_error *err)
{
    if (draft_seal (&g->draft) < 0 || fsync (g->draft.fd) < 0
        || read_back (tmp, &g->draft) < 0 || give_name (tmp, path) < 0)
        return errorf (err, "%s: cannot save: %s", path, strerror (errno));
    return 0;
}

int commit_paths (const char *dir,
                  int64_t step,
                  char *tmp,
                  char *path,
                  struct slurmdl_error *err)
{
    char folder[PATH_MAX];

    snprintf (folder, sizeof (folder), "%s/ckpt", dir);
    if (snprintf (path, PATH_MAX, "%s/%08lld.h5", folder, (long long)step)
        > PATH_MAX - 64) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: the path is too long", dir);
    }
    if (mkdir (folder, 0777) < 0 && errno != EEXIST)
        return errorf (err, "%s: cannot save: %s", path, strerror (errno));
    link_tmp_name (tmp, PATH_MAX, path);
    return 0;
}

/* ---- alone ---- */

static int alone (struct slurmdl *run,
                  struct job *job,
                  char *path,
                  struct slurmdl_error *err)
{
    struct part_of part = { 0 };
    struct merge g = { .ranks = 1, .parts = &part, .draft.fd = -1 };
    char tmp[PATH_MAX];
    size_t size;
    int rv = -1;

    g.draft.file = g.draft.layout = -1;
    if (commit_paths (run->dir, job->step, tmp, path, err) < 0)
        return -1;
    if (!(part.plan = make_plan (job, &size)))
        errorf (err, "out of memory");
    else if (merge_lay_out (&g, tmp, job->step, err) == 0) {
        merge_own_offsets (&g, job);
        if (write_pieces (tmp, g.draft.fd, job->list, job->n, &g.draft) < 0
            || merge_own_crcs (&g, job) < 0)
            errorf (err, "%s: cannot save: %s", path, strerror (errno));
        else
            rv = commit_finish (&g, tmp, path, err);
    }
    int e = errno;
    draft_close (&g.draft);
    free (part.plan);
    free (g.items);
    if (rv < 0)
        unlink (tmp);
    errno = e;
    return rv;
}

int commit (struct slurmdl *run,
            struct job *job,
            char *path,
            struct slurmdl_error *err)
{
    *path = '\0';
    if (!job->shared)
        return alone (run, job, path, err);
    if (team_join (run, err) < 0)
        return -1;
    return run->rank == 0 ? commit_lead (run, job, path, err)
                          : commit_follow (run, job, err);
}
