/* SPDX-License-Identifier: Apache-2.0 */
/* Make the folder of an attempt, with what the trainer finds in it. */
#include "launcher/trainer/attempt_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/sweep/queries.h"
#include "launcher/sys/json_number.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

static int cannot (const struct trial_attempt *a, const char *what, struct slurmdl_error *err)
{
    return errorf (err, "%s%s: %s", a->dir, what, inside_error (errno));
}

/* The trial's folder, which is not there yet if nobody had to claim the
 * attempt, or no more if somebody has removed it.
 */
static int open_trial (const struct trial_attempt *a)
{
    const char *name;
    char path[4200];
    int trials;
    int fd = -1;
    int e;

    snprintf (path, sizeof (path), "%.*s", (int)(strrchr (a->dir, '/') - a->dir), a->dir);
    if ((trials = inside_parent (path, &name)) < 0)
        return -1;
    if (a->number > 1)
        fd = inside_open_at (trials, name, O_PATH | O_DIRECTORY, 0, NULL);
    if (fd < 0 && (a->number == 1 || errno == ENOENT)
        && (mkdirat (trials, name, 0777) == 0 || errno == EEXIST))
        fd = inside_open_at (trials, name, O_PATH | O_DIRECTORY, 0, NULL);
    e = errno;
    close (trials);
    errno = e;
    return fd;
}

/* It is made now, or was by this user before. */
static int open_folder (const struct trial_attempt *a, struct stat *st, bool *made)
{
    const char *name = strrchr (a->dir, '/') + 1;
    int trial = open_trial (a);
    int fd = -1;
    int e;

    *made = trial >= 0 && mkdirat (trial, name, 0777) == 0;
    if (*made || (trial >= 0 && errno == EEXIST))
        fd = inside_open_at (trial, name, O_RDONLY | O_DIRECTORY, 0, st);
    e = errno;
    if (trial >= 0)
        close (trial);
    errno = e;
    return fd;
}

/* A try before may have ended for want of space, and another one is this
 * attempt's as well: what it left goes, and so does a link, not its target.
 */
static int create_file (int folder, const char *name, int flags)
{
    int fd = inside_open_at (folder, name, O_CREAT | O_EXCL | flags, 0644, NULL);

    if (fd >= 0 || errno != EEXIST || unlinkat (folder, name, 0) < 0)
        return fd;
    return inside_open_at (folder, name, O_CREAT | O_EXCL | flags, 0644, NULL);
}

static int write_whole (int fd, const char *text)
{
    size_t n = strlen (text);
    int rv = write (fd, text, n) == (ssize_t)n ? 0 : -1;

    return close (fd) < 0 ? -1 : rv;
}

/* Nobody else reads it before the trainer runs, or writes it ever. */
static int write_hparams (const struct trial_attempt *a, int folder, struct slurmdl_error *err)
{
    const json_t *hparams = trial_hparams (a->sweep, sweep_trial (a->sweep, a->trial));
    char *text = json_string_of (hparams, JSON_INDENT (2) | JSON_SORT_KEYS);
    int fd = text ? create_file (folder, "hparams.json", O_WRONLY) : -1;
    int rv = fd < 0 ? -1 : write_whole (fd, text);

    free (text);
    return rv < 0 ? cannot (a, "/hparams.json: cannot write", err) : 0;
}

/* Who may write to the folder's names may lead us anywhere: its owner is that
 * of a file that is made in it, whatever number the file system gives us.
 */
static int open_log (const struct trial_attempt *a, int folder, const struct stat *of,
                     struct slurmdl_error *err)
{
    int fd = create_file (folder, "log", O_RDWR | O_APPEND);
    struct stat st;

    if (fd < 0)
        return cannot (a, "/log: cannot create", err);
    if (fstat (fd, &st) < 0)
        return inside_close (fd, cannot (a, "/log: cannot create", err));
    if (st.st_uid == of->st_uid)
        return fd;
    unlinkat (folder, "log", 0);
    close (fd);
    errno = EBADMSG;
    return errorf (err, "%s: user %ld made this folder: nothing is trained in it", a->dir,
                   (long)of->st_uid);
}

int attempt_folder (const struct trial_attempt *a, int *log, bool *made, struct slurmdl_error *err)
{
    struct stat st;
    int folder = open_folder (a, &st, made);

    *log = -1;
    if (folder < 0)
        return cannot (a, ": cannot make the folder", err);
    *log = open_log (a, folder, &st, err);
    if (*log < 0 || write_hparams (a, folder, err) < 0)
        return inside_close (folder, -1);
    return folder;
}
