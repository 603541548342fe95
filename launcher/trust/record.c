/* SPDX-License-Identifier: Apache-2.0 */
/* What a user remembers of the experiments that he works at. */
#include "launcher/trust/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sys/digest.h"
#include "launcher/sys/publish.h"
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
        || snprintf (buf, size, "%s/slurm-dl/%s", own, id) >= (int)size
        || (make && mkdir (buf, 0700) < 0 && errno != EEXIST))
        return -1;
    return user_folder_check (buf);
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
    struct dirent *e;
    int fd = -1;
    DIR *d;

    if (find_folder (s, folder, sizeof (folder), false) == 0)
        fd = inside_open (folder, O_RDONLY | O_DIRECTORY, 0, NULL);
    if (!(d = fd < 0 ? NULL : fdopendir (fd)))
        return;
    while ((e = readdir (d)))
        unlinkat (fd, e->d_name, 0);
    closedir (d);
    inside_unlink (folder, AT_REMOVEDIR);
}
