/* SPDX-License-Identifier: Apache-2.0 */
/* Make the folder of a new experiment. */
#include "launcher/sweep/create.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/code/store.h"
#include "launcher/config/known_points.h"
#include "launcher/sweep/fork_source.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/remove.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/digest.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

enum { NUMBER_MAX = 9999, CONF_MAX = 1 << 20 };

/* What a group may write in is its, and so is all that is made there.  Its name
 * may stand for another folder of the user's by now.
 */
static void share_folder (const char *root, const char *dir)
{
    int fd = open (dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat top, st;

    /* where another group is forbidden the user's own has it */
    if (fd >= 0 && stat (root, &top) == 0 && fstat (fd, &st) == 0 && top.st_mode & S_IWGRP
        && !(top.st_mode & S_IWOTH)
        && (st.st_gid == top.st_gid || fchown (fd, -1U, top.st_gid) == 0))
        fchmod (fd, (st.st_mode & 07777) | S_ISGID | S_IRWXG);
    if (fd >= 0)
        close (fd);
}

static int cannot_make (const char *root, struct slurmdl_error *err)
{
    return errorf (err, "%s: cannot make an experiment folder: %s%s", root, strerror (errno),
                   errno == ENOENT ? "; make it first" : "");
}

static int claim_folder (const char *root, const char *name, char *dir, size_t size,
                         struct slurmdl_error *err)
{
    for (int i = 1; i <= NUMBER_MAX; i++) {
        if (snprintf (dir, size, "%s/%s-%04d", root, name, i) >= (int)size - SWEEP_FILES_LENGTH) {
            errno = ENAMETOOLONG;
            break;
        }
        if (mkdir (dir, 0777) == 0) {
            share_folder (root, dir);
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return cannot_make (root, err);
}

static int freeze_file (const struct experiment *e, const char *dir, char digest[DIGEST_SIZE],
                        struct slurmdl_error *err)
{
    char path[PATH_MAX];
    size_t len = e->text ? strlen (e->text) : 0;
    char *text = e->text ? strdup (e->text) : file_read_named (e->file, CONF_MAX, &len, err);
    int rv;

    if (!text)
        return e->text ? errorf (err, "out of memory") : -1;
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
    const struct frozen_code *c = e->frozen_code;
    struct event event = event_now ((struct event){
        .op = EVENT_CREATE,
        .by = user_name (),
        .version = LOG_VERSION,
        .name = e->name,
        .dir = e->dir,
        .seed = e->seed < 0 ? random_seed () : e->seed,
        .source = e->source,
        .from = e->source_trial,
        .from_length = e->source_length,
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
        return errorf (err, "no random numbers: %s", strerror (errno));
    if (e->search.nknown > 0)
        event.known = known_points_json (e);
    snprintf (path, sizeof (path), "%s/log", dir);
    if ((log = log_create (path, err)) && log_sync (log, NULL, NULL, err) == 0)
        rv = log_append (log, &event, 1, err);
    log_destroy (log);
    json_decref (event.known);
    return rv;
}

static int fill_folder (const struct experiment *e, const char *dir, char id[SWEEP_ID_SIZE],
                        struct slurmdl_error *err)
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
        || ((e->source_file || e->source_files || e->source_shared)
            && fork_source_publish (e, dir, err) < 0)
        || (e->frozen_code && put_code (e->frozen_code, dir, provenance, err) != 0))
        return -1;
    return first_entry (e, dir, digest, provenance, id, err) == 0 ? 0 : -1;
}

/* On a full disk nothing stays, unless its first entry may be there. */
static void take_away (const char *dir)
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
    if (claim_folder (own, e->folder ? e->folder : e->name, dir, size, err) < 0)
        return -1;
    if (fill_folder (e, dir, id, err) == 0)
        return 0;
    take_away (dir);
    return -1;
}
