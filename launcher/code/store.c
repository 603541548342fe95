/* SPDX-License-Identifier: Apache-2.0 */
/* The archive of an experiment, which experiments with the same code share. */
#include "launcher/code/code.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "launcher/sys/publish_file.h"
#include "launcher/sys/small_file.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { TRIES = 10 };

/* ".dl-code" beside an experiment, or a name in it. */
static void store_path (char *buf, size_t size, const char *dir, const char *name)
{
    snprintf (buf, size, "%.*s/.dl-code%s%s", (int)(strrchr (dir, '/') - dir), dir, name ? "/" : "",
              name ? name : "");
}

/* Find the archive with this digest: code that was frozen later has a file of its own beside the
 * first archive; if other users removed them, use the copy in .dl-code.  Returns -1 if all are
 * gone.
 */
static int archive_path (char *buf, size_t size, const char *dir, const char *digest)
{
    snprintf (buf, size, "%s/code-%.12s.tar.zst", dir, digest);
    if (access (buf, F_OK) == 0)
        return 0;
    snprintf (buf, size, "%s/code.tar.zst", dir);
    if (access (buf, F_OK) == 0)
        return 0;
    store_path (buf, size, dir, digest);
    return access (buf, F_OK);
}

/* Retry, because a network file system may take a moment to show a new file. */
static int find_archive (char *buf, size_t size, const char *dir, const char *digest,
                         struct slurmdl_error *err)
{
    static const struct timespec moment = { 0, 100 * 1000 * 1000 };

    for (int i = 0; i < TRIES; i++) {
        if (archive_path (buf, size, dir, digest) == 0)
            return 0;
        nanosleep (&moment, NULL);
    }
    errno = ENOENT;
    return errorf (err,
                   "%s/code.tar.zst is missing, and no other experiment here has its frozen code: "
                   "restore the file, or run the current code ('dl fork', 'dl flow run')",
                   dir);
}

/* Whether this user has a file 'path' with the same content, so that a hard link will do. */
static bool file_has_content (const char *path, const struct code_archive *a)
{
    char digest[DIGEST_SIZE];
    uid_t owner;
    size_t size;
    char *data = file_read_now (path, ARCHIVE_MAX, &size, &owner, NULL);
    bool is_same = data && size == a->size && owner == geteuid ();

    if (is_same) {
        digest_of (digest, data, size);
        is_same = !strcmp (digest, a->digest);
    }
    free (data);
    return is_same;
}

/* Link the archive into .dl-code without following symbolic links, which could lead anywhere. */
static int link_stored (const char *path, const char *stored)
{
    const char *name;
    int folder = inside_parent (stored, &name);

    return inside_close (folder, folder < 0 ? -1 : linkat (AT_FDCWD, path, folder, name, 0));
}

void ignore_in_git (const char *folder)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%.4000s/.gitignore", folder);
    if (publish_if_absent (path, "*\n", 2, NULL) < 0)
        errno = 0;
}

int store_put (const char *dir, const struct code_archive *a, struct slurmdl_error *err)
{
    char stored[PATH_MAX];
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/code.tar.zst", dir);
    if (access (path, F_OK) == 0)
        snprintf (path, sizeof (path), "%s/code-%.12s.tar.zst", dir, a->digest);
    store_path (stored, sizeof (stored), dir, a->digest);
    if (file_has_content (stored, a) && linkat (AT_FDCWD, stored, AT_FDCWD, path, 0) == 0)
        return 0;
    if (publish_if_absent (path, a->data, a->size, err) < 0)
        return -1;
    /* if this fails, experiments do not share the file */
    store_path (stored, sizeof (stored), dir, NULL);
    if (inside_mkdir (stored, 0777) == 0)
        ignore_in_git (stored);
    store_path (stored, sizeof (stored), dir, a->digest);
    if (link_stored (path, stored) < 0)
        errno = 0;
    return 0;
}

mode_t store_umask (const char *dir)
{
    struct stat st;
    bool is_shared = stat (dir, &st) == 0 && st.st_mode & S_IWGRP;
    mode_t mask = umask (077);

    umask (is_shared ? mask | 007 : mask | 077);
    return mask;
}

int store_get (const char *dir, const char *digest, struct code_archive *a,
               struct slurmdl_error *err)
{
    char path[PATH_MAX];

    if (find_archive (path, sizeof (path), dir, digest, err) < 0
        || !(a->data = file_read (path, ARCHIVE_MAX, &a->size, err)))
        return -1;
    digest_of (a->digest, a->data, a->size);
    if (!strcmp (a->digest, digest))
        return 0;
    code_archive_free (a);
    errno = EBADMSG;
    return errorf (err, "%s: this is not the code that was frozen; refusing to run it", path);
}

int store_unpack (const char *dir, const char *digest, const struct code_copy *copy,
                  struct slurmdl_error *err)
{
    struct slurmdl_error why = { "" };
    struct code_archive a = { .data = NULL };
    int rv = code_copy_check (copy, &why);

    if (rv == 0 || errno != ENOENT)
        return rv == 0 ? 0 : errorf (err, "%s", why.text);
    if (store_get (dir, digest, &a, err) < 0)
        return -1;
    rv = code_copy_make (copy, &a, err);
    code_archive_free (&a);
    return rv;
}

/* Whether dl created this file and no experiment uses it any more.  Check it, because another user
 * of a shared folder may have given such a name to another file of ours.
 */
static bool is_stored (int folder, const char *name)
{
    struct stat st;

    return strlen (name) == DIGEST_SIZE - 1 && strspn (name, "0123456789abcdef") == DIGEST_SIZE - 1
           && fstatat (folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG (st.st_mode)
           && st.st_nlink == 1;
}

void store_clean (const char *dir)
{
    char folder[PATH_MAX];
    bool is_used = false;
    struct dirent *d;
    int fd;
    DIR *all;

    store_path (folder, sizeof (folder), dir, NULL);
    fd = inside_open (folder, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (!(all = fd < 0 ? NULL : fdopendir (fd)))
        return;
    while ((d = readdir (all)))
        if (is_stored (fd, d->d_name))
            unlinkat (fd, d->d_name, 0);
    rewinddir (all);
    while (!is_used && (d = readdir (all)))
        is_used =
            strcmp (d->d_name, ".") && strcmp (d->d_name, "..") && strcmp (d->d_name, ".gitignore");
    if (!is_used)
        unlinkat (fd, ".gitignore", 0);
    closedir (all);
    inside_unlink (folder, AT_REMOVEDIR);
}
