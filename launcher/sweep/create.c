/* SPDX-License-Identifier: Apache-2.0 */
/* Create the folder of an experiment, with the source of a fork, and remove it. */
#include "launcher/sweep/create.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/code.h"
#include "launcher/config/code_settings.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/points.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/remove_tree.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/take_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "runtime/storage/inside.h"
#include "runtime/storage/link.h"

/* Rename the folder first: no worker and no other command finds a hidden name. */
int sweep_remove (const char *dir, struct slurmdl_error *err)
{
    const char *base = strrchr (dir, '/') + 1;
    char visible[PATH_MAX];
    char hidden[PATH_MAX];

    snprintf (visible, sizeof (visible), "%.*s.removed-%s", (int)(base - dir), dir, base);
    link_tmp_name (hidden, sizeof (hidden), visible);
    if (rename (dir, hidden) < 0)
        return errorf (err, "%s: cannot remove: %s", dir, strerror (errno));
    if (remove_tree (hidden) == 0)
        return 0;
    return errorf (err, "%s: partly removed: %s; the remaining files are in %s", dir,
                   strerror (errno), hidden);
}

/* ---- the source of a fork ---- */

/* Laid out like a trial: slurmdl_restore() takes TRIAL/a.K/ckpt/STEP.h5. */
void fork_source_dir (char *buf, size_t size, const char *dir)
{
    snprintf (buf, size, "%s/source/a.1", dir);
}

static int make_source_folders (const char *dir, bool files, struct slurmdl_error *err)
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
                                    "%s: others wrote it or can write to it, and a checkpoint can "
                                    "run code: use --trust if you trust them",
                                    from)
                          : errorf (err, "%s: cannot copy %s: %s", to, from, inside_error (errno));
}

/* ---- files of a script ---- */

static int copy_source (const char *from, const char *to, uid_t owner, struct slurmdl_error *err);

static int copy_source_folder (const char *from, const char *to, uid_t owner,
                               struct slurmdl_error *err)
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
            rv = copy_source (in, out, owner, err);
    }
    if (d)
        closedir (d);
    else if (fd >= 0)
        close (fd);
    return rv;
}

/* Skip what is neither a file nor a folder. */
static int copy_source (const char *from, const char *to, uid_t owner, struct slurmdl_error *err)
{
    struct stat st;

    if (lstat (from, &st) < 0)
        return cannot_copy (from, to, err);
    if (S_ISDIR (st.st_mode))
        return copy_source_folder (from, to, owner, err);
    if (!S_ISREG (st.st_mode))
        return 0;
    return file_copy_of (from, to, owner) < 0 ? cannot_copy (from, to, err) : 0;
}

static int copy_source_files (char *const *files, const char *folder, uid_t owner,
                              struct slurmdl_error *err)
{
    char path[PATH_MAX];

    for (; files && *files; files++) {
        errno = ENAMETOOLONG;
        if (snprintf (path, sizeof (path), "%s%s", folder, strrchr (*files, '/'))
            >= (int)sizeof (path))
            return cannot_copy (*files, folder, err);
        if (copy_source (*files, path, owner, err) < 0)
            return -1;
    }
    return 0;
}

int list_trial_files (const char *dir, char ***list)
{
    DIR *d = opendir (dir);

    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir (d));)
        if (!trial_name_is_ours (e->d_name))
            strings_addf (list, "%s/%s", dir, e->d_name);
    closedir (d);
    return 0;
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
    if (copy_source_files (files, trial, (uid_t)ANYBODY, err) < 0
        || publish_if_absent (mark, "", 0, err) < 0)
        rv = -1;
    strings_free (files);
    return rv;
}

int fork_source_publish (const struct experiment *e, const char *dir, struct slurmdl_error *err)
{
    char folder[PATH_MAX];
    char path[PATH_MAX + 40];
    int64_t step;

    if (make_source_folders (dir, !e->fork->file, err) < 0)
        return -1;
    fork_source_dir (folder, sizeof (folder), dir);
    if (!e->fork->file) {
        snprintf (path, sizeof (path), "%s/source", dir);
        return copy_source_files (e->fork->files, folder, e->fork->owner, err) < 0
                       || copy_source_files (e->fork->shared, path, e->fork->owner, err) < 0
                   ? -1
                   : 0;
    }
    snprintf (path, sizeof (path), "%s/ckpt/%08lld.h5", folder, (long long)e->fork->length);
    /* the copy belongs to this user, and pickled Python in it would run as this user */
    if (file_take_of (e->fork->file, path, e->fork->owner) < 0)
        return cannot_copy (e->fork->file, path, err);
    return slurmdl_checkpoint_verify (path, &step, err);
}

/* ---- a new experiment ---- */

enum { NUMBER_MAX = 9999, CONF_MAX = 1 << 20 };

/* In a folder that a group may write to, the experiment is the group's, too.  Use descriptors,
 * because the name may lead elsewhere by now.
 */
static void share_folder (const char *root, const char *dir)
{
    int fd = open (dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat top, st;

    /* if the user may not give it to that group, the user's own group keeps it */
    if (fd >= 0 && stat (root, &top) == 0 && fstat (fd, &st) == 0 && top.st_mode & S_IWGRP
        && !(top.st_mode & S_IWOTH)
        && (st.st_gid == top.st_gid || fchown (fd, -1U, top.st_gid) == 0))
        fchmod (fd, (st.st_mode & 07777) | S_ISGID | S_IRWXG);
    if (fd >= 0)
        close (fd);
}

static int cannot_make (const char *root, struct slurmdl_error *err)
{
    return errorf (err, "%s: cannot create an experiment folder: %s%s", root, strerror (errno),
                   errno == ENOENT ? "; create it first" : "");
}

int numbered_folder (const char *root, const char *name, mode_t mode, char *dir, size_t size)
{
    for (int i = 1; i <= NUMBER_MAX; i++) {
        if (snprintf (dir, size, "%s/%s-%04d", root, name, i) >= (int)size - SWEEP_FILES_LENGTH) {
            errno = ENAMETOOLONG;
            return -1;
        }
        if (mkdir (dir, mode) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

static int freeze_file (const struct experiment *e, const char *dir, char digest[DIGEST_SIZE],
                        struct slurmdl_error *err)
{
    char path[PATH_MAX];
    size_t len = e->text ? strlen (e->text) : 0;
    char *text = e->text ? xstrdup (e->text) : file_read_named (e->file, CONF_MAX, &len, err);
    int rv;

    if (!text)
        return -1;
    digest_of (digest, text, len);
    snprintf (path, sizeof (path), "%s/experiment.conf", dir);
    rv = publish_if_absent (path, text, len, err);
    free (text);
    return rv;
}

static int64_t random_seed (void)
{
    uint32_t seed = 0;

    if (getrandom (&seed, sizeof (seed), 0) != sizeof (seed))
        seed = (uint32_t)getpid ();
    return seed & 0x7fffffff;
}

static int put_code (const struct frozen_code *c, const char *dir, char provenance[DIGEST_SIZE],
                     struct slurmdl_error *err)
{
    mode_t mask = store_umask (dir);
    char path[PATH_MAX];
    int rv = 0;

    digest_of (provenance, c->provenance, strlen (c->provenance));
    snprintf (path, sizeof (path), "%s/provenance.json", dir);
    if ((c->archive && store_put (dir, c->archive, err) < 0)
        || publish_if_absent (path, c->provenance, strlen (c->provenance), err) != 0)
        rv = -1;
    umask (mask);
    return rv;
}

static int first_entry (const struct experiment *e, const char *dir, const char *digest,
                        const char *provenance, char id[SWEEP_ID_SIZE], struct slurmdl_error *err)
{
    const struct frozen_code *c = e->code->frozen;
    struct event event = event_now ((struct event){
        .op = EVENT_CREATE,
        .by = user_name (),
        .version = LOG_VERSION,
        .name = e->name,
        .dir = e->dir,
        .seed = e->search->seed < 0 ? random_seed () : e->search->seed,
        .source = e->fork->experiment,
        .from = e->fork->trial,
        .from_length = e->fork->length,
        .id = id,
        .digest = digest,
        .code = c && c->archive ? c->archive->digest : NULL,
        .root = c && c->archive ? c->root : NULL,
        .provenance = *provenance ? provenance : NULL,
    });
    char path[PATH_MAX];
    struct log *log;
    int rv = -1;

    if (random_word (id, SWEEP_ID_SIZE / 2) < 0)
        return errorf (err, "cannot get random numbers: %s", strerror (errno));
    if (e->search->config.nknown > 0)
        event.json = known_points_json (e);
    snprintf (path, sizeof (path), "%s/log", dir);
    if ((log = log_create (path, err)) && log_sync (log, NULL, NULL, err) == 0)
        rv = log_append (log, &event, 1, err);
    log_destroy (log);
    json_decref (event.json);
    return rv;
}

static int fill_experiment_folder (const struct experiment *e, const char *dir,
                                   char id[SWEEP_ID_SIZE], struct slurmdl_error *err)
{
    static const char *const folders[] = { "trials", "workers" };
    char path[PATH_MAX];
    char digest[DIGEST_SIZE];
    char provenance[DIGEST_SIZE] = "";

    for (size_t i = 0; i < sizeof (folders) / sizeof (*folders); i++) {
        snprintf (path, sizeof (path), "%s/%s", dir, folders[i]);
        if (folder_create (path, err) < 0)
            return -1;
    }
    ignore_in_git (dir);
    if (disk_reserve_make (dir, err) < 0 || freeze_file (e, dir, digest, err) != 0
        || ((e->fork->file || e->fork->files || e->fork->shared)
            && fork_source_publish (e, dir, err) < 0)
        || (e->code->frozen && put_code (e->code->frozen, dir, provenance, err) != 0))
        return -1;
    return first_entry (e, dir, digest, provenance, id, err) == 0 ? 0 : -1;
}

/* After a full disk, remove the folder, unless its first entry may exist. */
static void remove_unfinished (const char *dir)
{
    struct slurmdl_error err = { "" };
    char path[PATH_MAX];
    struct stat st;
    int e = errno;

    snprintf (path, sizeof (path), "%s/log/000000/00000001", dir);
    if (lstat (path, &st) < 0 && errno == ENOENT && sweep_remove (dir, &err) == 0)
        store_clean (dir);
    errno = e;
}

int sweep_create (const struct experiment *e, const char *root, char *dir, size_t size,
                  char id[SWEEP_ID_SIZE], struct slurmdl_error *err)
{
    char own[PATH_MAX];

    if (!realpath (root, own))
        return cannot_make (root, err);
    if (numbered_folder (own, e->fork->folder ? e->fork->folder : e->name, 0777, dir, size) < 0)
        return cannot_make (own, err);
    share_folder (own, dir);
    if (fill_experiment_folder (e, dir, id, err) == 0)
        return 0;
    remove_unfinished (dir);
    return -1;
}
