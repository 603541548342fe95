/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint with which every trial of a fork begins. */
#include "launcher/sweep/fork_source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/sys/publish.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

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

static int copy_data (int from, int to)
{
    static const size_t size = 1 << 20;
    char *buf = malloc (size);
    ssize_t n = buf ? 1 : -1;

    while (n > 0 && (n = read (from, buf, size)) > 0)
        for (ssize_t at = 0, k; at < n; at += k)
            if ((k = write (to, buf + at, (size_t)(n - at))) < 0)
                goto fail;
    free (buf);
    return n < 0 ? -1 : fsync (to);
fail:
    free (buf);
    return -1;
}

static int copy_file (int in, int folder, const char *name)
{
    char tmp[64];
    int out;
    int rv;
    int e;

    link_tmp_name (tmp, sizeof (tmp), "");
    out = inside_open_at (folder, tmp, O_WRONLY | O_CREAT | O_EXCL, 0666, NULL);
    if (out < 0)
        return -1;
    rv = copy_data (in, out);
    if (close (out) < 0)
        rv = -1;
    if (rv == 0)
        rv = link_replace_at (folder, tmp, name);
    if (rv < 0) {
        e = errno;
        unlinkat (folder, tmp, 0);
        errno = e;
    }
    return rv;
}

/* The file that is open, whatever has its name by now. */
static int link_file (int in, int folder, const char *name)
{
    char opened[32];

    snprintf (opened, sizeof (opened), "/proc/self/fd/%d", in);
    return linkat (AT_FDCWD, opened, folder, name, AT_SYMLINK_FOLLOW);
}

/* A checkpoint never changes: another name for it is as good as a copy, where
 * the file system and the permissions allow it.
 */
static int take_file (const char *from, const char *to)
{
    const char *name;
    int in = inside_open_any (from, O_RDONLY, 0, NULL);
    int folder = in < 0 ? -1 : inside_parent (to, &name);
    int rv = -1;
    int e;

    if (folder >= 0 && (rv = link_file (in, folder, name)) < 0)
        rv = copy_file (in, folder, name);
    e = errno;
    if (in >= 0)
        close (in);
    if (folder >= 0)
        close (folder);
    errno = e;
    return rv;
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
    if (take_file (e->source_file, path) < 0)
        return errorf (err,
                       "%s: cannot copy %s: %s",
                       path,
                       e->source_file,
                       inside_error (errno));
    return slurmdl_checkpoint_verify (path, &step, err);
}
