/* SPDX-License-Identifier: Apache-2.0 */
/* What a user remembers of the experiments that he works at. */
#include "launcher/trust/record.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/digest.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { RECORD_MAX = 2 << 20 };

int record_base (char *buf, size_t size)
{
    const char *state = getenv ("XDG_STATE_HOME");
    const char *home = getenv ("HOME");
    const struct passwd *pw;

    if (state && *state == '/')
        return snprintf (buf, size, "%s", state) < (int)size ? 0 : -1;
    if ((!home || *home != '/') && (pw = getpwuid (geteuid ())))
        home = pw->pw_dir;
    return home && snprintf (buf, size, "%s/.local/state", home) < (int)size
               ? 0
               : -1;
}

/* Experiments of older versions have no id: then it is the path's digest. */
static void id_of (const struct sweep *s, char id[DIGEST_SIZE])
{
    if (s->id)
        snprintf (id, DIGEST_SIZE, "%s", s->id);
    else
        digest_of (id, s->dir, strlen (s->dir));
}

/* Make 'path' and the folders above it. */
static int make_folders (char *path)
{
    for (char *slash = strchr (path + 1, '/'); slash;
         slash = strchr (slash + 1, '/')) {
        *slash = '\0';
        int rv = mkdir (path, 0700);
        *slash = '/';
        if (rv < 0 && errno != EEXIST && errno != EACCES && errno != EROFS)
            return -1;
    }
    return mkdir (path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

/* In a record: a link to the experiment. */
static const char owner_link[] = "experiment";

static int find_one (const struct sweep *s,
                     const char *base,
                     const char *id,
                     char *buf,
                     size_t size,
                     bool make)
{
    char link[PATH_MAX + 16];

    if (snprintf (buf, size, "%s/slurm-dl/%s", base, id) >= (int)size)
        return -1;
    if (make && mkdir (buf, 0700) == 0) {
        snprintf (link, sizeof (link), "%s/%s", buf, owner_link);
        return symlink (s->dir, link);
    }
    return make && errno != EEXIST ? -1 : user_folder_check (buf);
}

/* The id is known to all who may read a log: the record of one experiment is
 * not that of another one that is there, whoever has written its log.
 */
static bool is_of_another (const char *folder, const struct sweep *s)
{
    char link[PATH_MAX + 16];
    struct stat first, own;

    snprintf (link, sizeof (link), "%s/%s", folder, owner_link);
    return stat (link, &first) == 0 && stat (s->dir, &own) == 0
           && (first.st_ino != own.st_ino || first.st_dev != own.st_dev);
}

static int
find_folder (const struct sweep *s, char *buf, size_t size, bool make)
{
    char base[PATH_MAX];
    char own[PATH_MAX];
    char id[DIGEST_SIZE];

    errno = ENOENT;
    if (record_base (base, sizeof (base)) < 0
        || (make && make_folders (base) < 0) || !realpath (base, own))
        return -1;
    id_of (s, id);
    if (snprintf (buf, size, "%s/slurm-dl", own) >= (int)size
        || (make && mkdir (buf, 0700) < 0 && errno != EEXIST)
        || user_folder_check (buf) < 0
        || find_one (s, own, id, buf, size, make) < 0)
        return -1;
    if (!is_of_another (buf, s))
        return 0;
    digest_of (id, s->dir, strlen (s->dir));
    return find_one (s, own, id, buf, size, make);
}

int record_folder (const struct sweep *s,
                   char *buf,
                   size_t size,
                   struct slurmdl_error *err)
{
    *buf = '\0';
    if (find_folder (s, buf, size, true) == 0)
        return 0;
    return errorf (err,
                   "cannot keep records in %s: %s (XDG_STATE_HOME names "
                   "another folder)",
                   *buf ? buf : "the home folder",
                   errno == EPERM ? "others may write there"
                                  : inside_error (errno));
}

char *record_read (const struct sweep *s, const char *name)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 300];

    if (find_folder (s, folder, sizeof (folder), false) < 0)
        return NULL;
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    return file_read_now (path, RECORD_MAX, NULL, NULL, NULL);
}

int record_write (const struct sweep *s,
                  const char *name,
                  const char *text,
                  struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 300];
    mode_t mask;
    int rv;

    if (record_folder (s, folder, sizeof (folder), err) < 0)
        return -1;
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    mask = umask (077);
    rv = publish_replace (path, text, strlen (text), err);
    umask (mask);
    return rv;
}

void record_remove (const struct sweep *s)
{
    char folder[PATH_MAX];

    if (find_folder (s, folder, sizeof (folder), false) == 0)
        remove_tree (folder);
}
