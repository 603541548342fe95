/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint with which every trial of a fork begins. */
#include "launcher/sweep/fork_source.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "launcher/sys/publish.h"
#include "launcher/sys/take_file.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

/* Laid out like a trial: slurmdl_restore() takes TRIAL/a.K/ckpt/STEP.h5. */
void fork_source_dir (char *buf, size_t size, const char *dir)
{
    snprintf (buf, size, "%s/source/a.1", dir);
}

static int make_folders (const char *dir, struct slurmdl_error *err)
{
    static const char *const folders[] = { "", "/a.1", "/a.1/ckpt" };
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof (folders) / sizeof (*folders); i++) {
        snprintf (path, sizeof (path), "%s/source%s", dir, folders[i]);
        if (folder_create (path, err) < 0)
            return -1;
    }
    return 0;
}

int fork_source_publish (const struct experiment *e,
                         const char *dir,
                         struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 40];
    int64_t step;

    if (make_folders (dir, err) < 0)
        return -1;
    fork_source_dir (folder, sizeof (folder), dir);
    snprintf (path,
              sizeof (path),
              "%s/ckpt/%08lld.h5",
              folder,
              (long long)e->source_length);
    /* the copy is this user's: what it has of Python's would run as it */
    if (file_take_of (e->source_file, path, e->source_owner) < 0)
        return errno == EPERM
                   ? errorf (err,
                             "%s: others have written it, or may write to it, "
                             "and a checkpoint can run code: --trust, if you "
                             "trust them",
                             e->source_file)
                   : errorf (err,
                             "%s: cannot copy %s: %s",
                             path,
                             e->source_file,
                             inside_error (errno));
    return slurmdl_checkpoint_verify (path, &step, err);
}
