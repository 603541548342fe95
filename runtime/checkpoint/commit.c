/* SPDX-License-Identifier: Apache-2.0 */
/* Make one checkpoint of what the ranks have, and give it its name. */
#include "runtime/checkpoint/commit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/error.h"
#include "runtime/checkpoint/finish.h"
#include "runtime/checkpoint/merge.h"
#include "runtime/checkpoint/staging.h"
#include "runtime/run/session.h"

static int alone (struct slurmdl *run, struct save_job *job, char *path, struct slurmdl_error *err)
{
    struct part_of part = { 0 };
    struct merge g = { .ranks = 1, .parts = &part, .draft.fd = -1 };
    char tmp[PATH_MAX];
    size_t size;
    int rv = -1;

    if (finish_paths (run->dir, job->step, tmp, path, err) < 0)
        return -1;
    if (!(part.plan = make_plan (job, &size)))
        errorf (err, "out of memory");
    else if (merge_lay_out (&g, tmp, job->step, err) == 0) {
        merge_own_offsets (&g, job);
        if (write_pieces (tmp, g.draft.fd, job->list, job->n, &g.draft) < 0
            || merge_own_crcs (&g, job) < 0)
            errorf (err, "%s: cannot save: %s", path, strerror (errno));
        else
            rv = finish_file (&g.draft, tmp, path, err);
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

int commit (struct slurmdl *run, struct save_job *job, char *path, struct slurmdl_error *err)
{
    *path = '\0';
    if (!job->shared)
        return alone (run, job, path, err);
    if (session_join (run, err) < 0)
        return -1;
    return run->rank == 0 ? commit_lead (run, job, path, err) : commit_follow (run, job, err);
}
