/* SPDX-License-Identifier: Apache-2.0 */
/* What a user remembers of the experiments that he works at. */
#include "launcher/sweep/trust_record.h"

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
#include "runtime/storage/link.h"

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
    return home && snprintf (buf, size, "%s/.local/state", home) < (int)size ? 0 : -1;
}

/* Make 'path' and the folders above it. */
static int make_folders (char *path)
{
    for (char *slash = strchr (path + 1, '/'); slash; slash = strchr (slash + 1, '/')) {
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

enum { KEY_SIZE = 96, NAME_SIZE = 64, ID_LENGTH = 32 };

/* The folder of all records.  -1 with errno. */
static int find_records (char *buf, size_t size, bool make)
{
    char base[PATH_MAX];
    char own[PATH_MAX];

    errno = ENOENT;
    if (record_base (base, sizeof (base)) < 0 || (make && make_folders (base) < 0)
        || !realpath (base, own) || snprintf (buf, size, "%s/slurm-dl", own) >= (int)size
        || (make && mkdir (buf, 0700) < 0 && errno != EEXIST))
        return -1;
    return user_folder_check (buf);
}

static int key_text (char key[KEY_SIZE], const struct sweep *s, enum record_key by)
{
    char digest[DIGEST_SIZE];
    struct stat st;

    if (by == RECORD_PATH) {
        digest_of (digest, s->dir, strlen (s->dir));
        snprintf (key, KEY_SIZE, "path-%s", digest);
    } else if (stat (s->dir, &st) == 0)
        snprintf (key, KEY_SIZE, "inode-%lx-%lx", (unsigned long)st.st_dev,
                  (unsigned long)st.st_ino);
    else
        return -1;
    return 0;
}

/* The name of the record that was made of this folder. */
static int name_by (const char *records, const struct sweep *s, enum record_key by,
                    char name[NAME_SIZE])
{
    char key[KEY_SIZE];
    char link[PATH_MAX + KEY_SIZE];
    ssize_t n;

    if (by == RECORD_ID)
        return snprintf (name, NAME_SIZE, "%s", s->id ? s->id : "") > 0 ? 0 : -1;
    if (key_text (key, s, by) < 0)
        return -1;
    snprintf (link, sizeof (link), "%s/%s", records, key);
    if ((n = readlink (link, name, NAME_SIZE - 1)) <= 0)
        return -1;
    name[n] = '\0';
    return strchr (name, '/') || *name == '.' ? -1 : 0;
}

/* One of the folder's records, and of an experiment with this id. */
static int name_of (const char *records, const struct sweep *s, char *name)
{
    for (enum record_key by = RECORD_PATH; s->id && by <= RECORD_INODE; by++)
        if (name_by (records, s, by, name) == 0 && !strncmp (name, s->id, ID_LENGTH)
            && (!name[ID_LENGTH] || name[ID_LENGTH] == '.'))
            return 0;
    errno = ENOENT;
    return -1;
}

/* Only the user's word gives a folder another record. */
static int name_folder (const char *records, const struct sweep *s, enum record_key by,
                        const char *name, bool anew)
{
    char key[KEY_SIZE];
    char path[PATH_MAX + KEY_SIZE];
    char tmp[PATH_MAX + KEY_SIZE + 64];
    char there[NAME_SIZE];

    if (name_by (records, s, by, there) == 0 && (!anew || !strcmp (there, name)))
        return 0;
    if (key_text (key, s, by) < 0)
        return -1;
    snprintf (path, sizeof (path), "%s/%s", records, key);
    link_tmp_name (tmp, sizeof (tmp), path);
    return symlink (name, tmp) < 0 ? -1 : rename (tmp, path);
}

/* Another folder's may have the id for its name. */
static int make_record (const char *records, const struct sweep *s, char name[NAME_SIZE])
{
    char path[PATH_MAX + NAME_SIZE];
    char link[PATH_MAX + NAME_SIZE + 16];
    char digest[DIGEST_SIZE];
    int rv;

    snprintf (name, NAME_SIZE, "%s", s->id);
    snprintf (path, sizeof (path), "%s/%s", records, name);
    if ((rv = mkdir (path, 0700)) < 0 && errno == EEXIST) {
        digest_of (digest, s->dir, strlen (s->dir));
        snprintf (name, NAME_SIZE, "%s.%.16s", s->id, digest);
        snprintf (path, sizeof (path), "%s/%s", records, name);
        rv = mkdir (path, 0700);
    }
    if (rv < 0)
        return errno == EEXIST ? 0 : -1;
    snprintf (link, sizeof (link), "%s/%s", path, owner_link);
    return symlink (s->dir, link);
}

enum record_use { RECORD_READ, RECORD_MAKE, RECORD_WRITE };

static int find_folder (const struct sweep *s, char *buf, size_t size, enum record_use use)
{
    bool make = use != RECORD_READ;
    bool anew = use == RECORD_WRITE;
    char records[PATH_MAX - NAME_SIZE];
    char name[NAME_SIZE];

    if (find_records (records, sizeof (records), make) < 0)
        return -1;
    if (name_of (records, s, name) < 0 && (!make || make_record (records, s, name) < 0))
        return -1;
    snprintf (buf, size, "%s/%s", records, name);
    if (make
        && (name_folder (records, s, RECORD_PATH, name, anew) < 0
            || name_folder (records, s, RECORD_INODE, name, anew) < 0))
        return -1;
    return user_folder_check (buf);
}

static int open_record (const struct sweep *s, char *buf, size_t size, enum record_use use,
                        struct slurmdl_error *err)
{
    *buf = '\0';
    if (find_folder (s, buf, size, use) == 0)
        return 0;
    return errorf (err,
                   "cannot keep records in %s: %s (XDG_STATE_HOME names "
                   "another folder)",
                   *buf ? buf : "the home folder",
                   errno == EPERM ? "others may write there" : inside_error (errno));
}

int record_folder (const struct sweep *s, char *buf, size_t size, struct slurmdl_error *err)
{
    return open_record (s, buf, size, RECORD_MAKE, err);
}

static char *read_in (const char *folder, const char *name)
{
    char path[PATH_MAX + 300];

    snprintf (path, sizeof (path), "%s/%s", folder, name);
    return file_read_now (path, RECORD_MAX, NULL, NULL, NULL);
}

char *record_read (const struct sweep *s, const char *name)
{
    char folder[PATH_MAX];

    return find_folder (s, folder, sizeof (folder), RECORD_READ) < 0 ? NULL
                                                                     : read_in (folder, name);
}

char *record_read_by (const struct sweep *s, enum record_key key, const char *name)
{
    char records[PATH_MAX - NAME_SIZE];
    char folder[PATH_MAX];
    char of[NAME_SIZE];

    if (find_records (records, sizeof (records), false) < 0 || name_by (records, s, key, of) < 0)
        return NULL;
    snprintf (folder, sizeof (folder), "%s/%s", records, of);
    return user_folder_check (folder) < 0 ? NULL : read_in (folder, name);
}

int record_write (const struct sweep *s, const char *name, const char *text,
                  struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 300];
    mode_t mask;
    int rv;

    if (open_record (s, folder, sizeof (folder), RECORD_WRITE, err) < 0)
        return -1;
    snprintf (path, sizeof (path), "%s/%s", folder, name);
    mask = umask (077);
    rv = publish_replace (path, text, strlen (text), err);
    umask (mask);
    return rv;
}

/* The links of the folder that is to be removed go, whatever they name: a later
 * folder may have its path, and its inode.
 */
void record_remove (const struct sweep *s)
{
    char records[PATH_MAX - NAME_SIZE];
    char folder[PATH_MAX];
    char key[KEY_SIZE];
    char path[PATH_MAX + KEY_SIZE];

    if (find_folder (s, folder, sizeof (folder), RECORD_READ) == 0)
        remove_tree (folder);
    if (find_records (records, sizeof (records), false) < 0)
        return;
    for (enum record_key by = RECORD_PATH; by <= RECORD_INODE; by++)
        if (key_text (key, s, by) == 0) {
            snprintf (path, sizeof (path), "%s/%s", records, key);
            unlink (path);
        }
}
