/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which the trials run: the frozen files, and links beside. */
#include "launcher/code/copy.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/remove_tree.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

enum { LEVELS = 2, SIBLINGS_MAX = 1000 };

/* The part of a path that has the last names of it: "/a/b/c/d" "/b/c/d". */
static const char *last_names (const char *root)
{
    const char *from = root + strlen (root);

    for (int i = 0; i <= LEVELS && from > root; i++)
        do
            from--;
        while (from > root && *from != '/');
    return from;
}

int code_copy_path (const struct code_copy *c, char *buf, size_t size)
{
    size_t n = strlen (c->root);

    if (strncmp (c->dir, c->root, n) || (c->dir[n] && c->dir[n] != '/')) {
        errno = EBADMSG;
        return -1;
    }
    if (snprintf (buf, size, "%s%s%s", c->base, last_names (c->root), c->dir + n) < (int)size)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int code_copy_check (const struct code_copy *c, struct slurmdl_error *err)
{
    if (user_folder_check (c->base) == 0)
        return 0;
    if (errno != EPERM)
        return errorf (err, "%s: %s", c->base, inside_error (errno));
    return errorf (err, "%s: others may write to this copy of the code: remove it", c->base);
}

/* What stands beside a folder stands beside its copy, too; but for a folder of
 * others, or of very many.
 */
static void link_siblings (const char *parent, const char *copy, const char *own)
{
    char target[PATH_MAX];
    struct dirent *d;
    struct stat st;
    int to = inside_open (copy, O_RDONLY | O_DIRECTORY, 0, NULL);
    DIR *all = to < 0 ? NULL : opendir (parent);
    int n = 0;

    if (all && fstat (dirfd (all), &st) == 0 && st.st_uid == geteuid () && !(st.st_mode & S_IWOTH))
        while (n < SIBLINGS_MAX && (d = readdir (all))) {
            bool is_special = !strcmp (d->d_name, ".") || !strcmp (d->d_name, "..")
                              || !strcmp (d->d_name, own) || !strcmp (d->d_name, "__pycache__");
            snprintf (target, sizeof (target), "%s/%s", parent, d->d_name);
            if (!is_special && symlinkat (target, to, d->d_name) == 0)
                n++;
        }
    if (all)
        closedir (all);
    if (to >= 0)
        close (to);
}

/* The copy of the folder root[0..len), with what stands in it if it is above
 * the root.
 */
static int make_folder (const char *base, const char *root, size_t len)
{
    size_t first = (size_t)(last_names (root) - root);
    char original[PATH_MAX];
    char own[NAME_MAX + 1];
    char copy[PATH_MAX];

    snprintf (copy, sizeof (copy), "%s%.*s", base, (int)(len - first), root + first);
    if (inside_mkdir (copy, 0777) < 0)
        return -1;
    if (!root[len])
        return 0;
    snprintf (original, sizeof (original), "%.*s", (int)len, root);
    snprintf (own, sizeof (own), "%.*s", (int)strcspn (root + len + 1, "/"), root + len + 1);
    link_siblings (original, copy, own);
    return 0;
}

static int make_folders (const char *base, const char *root)
{
    size_t len = (size_t)(last_names (root) - root);

    while (root[len]) {
        len += 1 + strcspn (root + len + 1, "/");
        if (make_folder (base, root, len) < 0)
            return -1;
    }
    return 0;
}

static int fill (const char *base, const struct code_copy *c, const struct code_archive *a,
                 struct slurmdl_error *err)
{
    char path[PATH_MAX];

    if (mkdir (base, 0700) < 0 || make_folders (base, c->root) < 0)
        return errorf (err, "%s: cannot make a copy of the code: %s", base, inside_error (errno));
    snprintf (path, sizeof (path), "%s%s", base, last_names (c->root));
    return code_archive_unpack (a->data, a->size, path, err);
}

int code_copy_make (const struct code_copy *c, const struct code_archive *a,
                    struct slurmdl_error *err)
{
    char tmp[PATH_MAX];
    int rv;
    int e;

    link_tmp_name (tmp, sizeof (tmp), c->base);
    rv = fill (tmp, c, a, err);
    if (rv == 0 && rename (tmp, c->base) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        rv = errorf (err, "%s: %s", c->base, strerror (errno));
    e = errno;
    remove_tree (tmp);
    errno = e;
    return rv < 0 ? -1 : code_copy_check (c, err);
}
