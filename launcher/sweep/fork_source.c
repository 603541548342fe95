/* SPDX-License-Identifier: Apache-2.0 */
/* The checkpoint, or the files, with which every trial of a fork begins. */
#include "launcher/sweep/fork_source.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/queries.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/take_file.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"

/* Laid out like a trial: slurmdl_restore() takes TRIAL/a.K/ckpt/STEP.h5. */
void fork_source_dir (char *buf, size_t size, const char *dir)
{
    snprintf (buf, size, "%s/source/a.1", dir);
}

static int make_folders (const char *dir, bool files, struct slurmdl_error *err)
{
    static const char *const folders[] = { "", "/a.1", "/a.1/ckpt" };
    size_t n = sizeof (folders) / sizeof (*folders) - files;
    char path[PATH_MAX];

    for (size_t i = 0; i < n; i++) {
        snprintf (path, sizeof (path), "%s/source%s", dir, folders[i]);
        if (folder_create (path, err) < 0)
            return -1;
    }
    return 0;
}

static int cannot_copy (const char *from, const char *to, struct slurmdl_error *err)
{
    return errno == EPERM ? errorf (err,
                                    "%s: others have written it, or may write to it, and "
                                    "a checkpoint can run code: --trust, if you trust them",
                                    from)
                          : errorf (err, "%s: cannot copy %s: %s", to, from, inside_error (errno));
}

/* ---- files of a script ---- */

static int copy_any (const char *from, const char *to, uid_t owner, struct slurmdl_error *err);

static int copy_folder (const char *from, const char *to, uid_t owner, struct slurmdl_error *err)
{
    int fd = inside_open_any (from, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir (fd);
    char in[PATH_MAX], out[PATH_MAX];
    int rv = d ? folder_create (to, err) : cannot_copy (from, to, err);

    for (struct dirent *e; d && rv == 0 && (e = readdir (d));) {
        if (!strcmp (e->d_name, ".") || !strcmp (e->d_name, ".."))
            continue;
        errno = ENAMETOOLONG;
        if (snprintf (in, sizeof (in), "%s/%s", from, e->d_name) >= (int)sizeof (in)
            || snprintf (out, sizeof (out), "%s/%s", to, e->d_name) >= (int)sizeof (out))
            rv = cannot_copy (from, to, err);
        else
            rv = copy_any (in, out, owner, err);
    }
    if (d)
        closedir (d);
    else if (fd >= 0)
        close (fd);
    return rv;
}

/* What is neither a file nor a folder stays. */
static int copy_any (const char *from, const char *to, uid_t owner, struct slurmdl_error *err)
{
    struct stat st;

    if (lstat (from, &st) < 0)
        return cannot_copy (from, to, err);
    if (S_ISDIR (st.st_mode))
        return copy_folder (from, to, owner, err);
    if (!S_ISREG (st.st_mode))
        return 0;
    return file_copy_of (from, to, owner) < 0 ? cannot_copy (from, to, err) : 0;
}

static int copy_files (char *const *files, const char *folder, uid_t owner,
                       struct slurmdl_error *err)
{
    char path[PATH_MAX];

    for (; files && *files; files++) {
        errno = ENAMETOOLONG;
        if (snprintf (path, sizeof (path), "%s%s", folder, strrchr (*files, '/'))
            >= (int)sizeof (path))
            return cannot_copy (*files, folder, err);
        if (copy_any (*files, path, owner, err) < 0)
            return -1;
    }
    return 0;
}

int list_trial_files (const char *dir, char ***list)
{
    DIR *d = opendir (dir);
    int rv = d ? 0 : -1;

    for (struct dirent *e; d && rv == 0 && (e = readdir (d));)
        if (!trial_name_is_ours (e->d_name))
            rv = strings_addf (list, "%s/%s", dir, e->d_name);
    if (d)
        closedir (d);
    return rv;
}

int fork_source_hand_on (const char *dir, const char *trial, struct slurmdl_error *err)
{
    char mark[PATH_MAX], folder[PATH_MAX];
    char **files = NULL;
    struct stat st;
    int rv = 0;

    snprintf (folder, sizeof (folder), "%s/source", dir);
    if (snprintf (mark, sizeof (mark), "%s/.source", trial) >= (int)sizeof (mark)
        || lstat (mark, &st) == 0 || list_trial_files (folder, &files) < 0 || !files)
        return 0;
    if (copy_files (files, trial, (uid_t)ANYBODY, err) < 0
        || publish_if_absent (mark, "", 0, err) < 0)
        rv = -1;
    strings_free (files);
    return rv;
}

/* ---- either ---- */

int fork_source_publish (const struct experiment *e, const char *dir, struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 40];
    int64_t step;

    if (make_folders (dir, !e->source_file, err) < 0)
        return -1;
    fork_source_dir (folder, sizeof (folder), dir);
    if (!e->source_file) {
        snprintf (path, sizeof (path), "%s/source", dir);
        return copy_files (e->source_files, folder, e->source_owner, err) < 0
                       || copy_files (e->source_shared, path, e->source_owner, err) < 0
                   ? -1
                   : 0;
    }
    snprintf (path, sizeof (path), "%s/ckpt/%08lld.h5", folder, (long long)e->source_length);
    /* the copy is this user's: what it has of Python's would run as it */
    if (file_take_of (e->source_file, path, e->source_owner) < 0)
        return cannot_copy (e->source_file, path, err);
    return slurmdl_checkpoint_verify (path, &step, err);
}
