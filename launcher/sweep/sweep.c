/* SPDX-License-Identifier: Apache-2.0 */
/* Open the folder of an experiment, and read and extend its decision log. */
#include "launcher/sweep/sweep.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/snapshot.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "runtime/storage/inside.h"

enum { FROZEN_MAX = 64 << 20 };

/* The replay of the log follows the settings of experiment.conf, so it fails if that file was
 * changed.  Then blame the file, not the log.
 */
static void blame_file (const struct sweep *s, struct slurmdl_error *err)
{
    if (!s->logged_digest || !strcmp (s->digest, s->logged_digest))
        return;
    *err->text = '\0';
    errorf (err,
            "%s/experiment.conf: changed since the experiment was created, and its log no longer "
            "matches: restore this file",
            s->dir);
}

void sweep_blame_folder (const struct sweep *s, struct slurmdl_error *err)
{
    char path[PATH_MAX];
    int e = errno;

    if (!err || snprintf (path, sizeof (path), "%s/log", s->dir) >= (int)sizeof (path)
        || access (path, F_OK) == 0 || errno != ENOENT) {
        errno = e;
        return;
    }
    *err->text = '\0';
    errorf (err,
            "%s: the experiment's folder was moved or removed; run 'dl resume' to continue in its "
            "new location",
            s->dir);
}

int sweep_sync (struct sweep *s, struct slurmdl_error *err)
{
    int rv = log_sync (s->log, sweep_apply, s, err);

    if (rv < 0 && errno == EBADMSG && !strncmp (err->text, "decision log", 12))
        blame_file (s, err);
    else if (rv < 0)
        sweep_blame_folder (s, err);
    return rv;
}

enum published sweep_publish (struct sweep *s, struct event *events, size_t n,
                              struct slurmdl_error *err)
{
    enum published rv;

    for (size_t i = 0; i < n; i++)
        events[i] = event_now (events[i]);
    rv = log_append (s->log, events, n, err);
    for (size_t i = 0; i < n && rv == PUBLISH_DONE; i++)
        rv = sweep_apply (&events[i], s, err) < 0 ? PUBLISH_FAILED : PUBLISH_DONE;
    if (rv == PUBLISH_LATE && sweep_sync (s, err) < 0)
        return PUBLISH_FAILED;
    return rv;
}

int sweep_fsync (const struct sweep *s, struct slurmdl_error *err)
{
    return log_fsync (s->log, err);
}

enum published sweep_insist (struct sweep *s, struct event event,
                             bool (*still) (const struct sweep *s, const void *arg),
                             const void *arg, struct slurmdl_error *err)
{
    enum published rv = PUBLISH_LATE;

    while (rv == PUBLISH_LATE && (!still || still (s, arg)))
        rv = sweep_publish (s, &event, 1, err);
    return rv;
}

static int read_frozen (struct sweep *s, const char *path, struct problems *p,
                        struct slurmdl_error *err)
{
    size_t size;
    char *text = file_read_now (path, FROZEN_MAX, &size, &s->owner, err);

    if (!text)
        return -1;
    digest_of (s->digest, text, size);
    if (!(s->exp = experiment_read_text (path, text, size, p)))
        errorf (err, "%s: cannot be used", path);
    s->frozen = text;
    return s->exp ? 0 : -1;
}

/* The log belongs to the owner of its first entry.  Look at the entry itself even if a pack holds
 * its events, too.
 */
static int find_log_owner (struct sweep *s, struct slurmdl_error *err)
{
    char path[PATH_MAX + 32];
    struct stat st;
    int fd;

    s->log_owner = (uid_t)-1;
    snprintf (path, sizeof (path), "%s/log/000000/00000001", s->dir);
    if ((fd = inside_open (path, O_RDONLY, 0, &st)) < 0)
        return errno == ENOENT ? 0 : errorf (err, "%s: cannot read: %s", path, strerror (errno));
    close (fd);
    s->log_owner = st.st_uid;
    return 0;
}

/* Others may have chosen the name, so a shell must not read it as an option or a command. */
static char *name_word (const char *name)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s%s", *name == '-' ? "./" : "", name);
    return shell_word (path);
}

struct sweep *sweep_open (const char *dir, struct problems *p, struct slurmdl_error *err)
{
    struct sweep *s = xcalloc (1, sizeof (*s));
    char own[PATH_MAX];
    char path[PATH_MAX + 32];

    /* the user may reach the folder through links, but paths inside it must not have any */
    if (!realpath (dir, own)) {
        errorf (err, "%s/experiment.conf: cannot read: %s", dir, strerror (errno));
        goto fail;
    }
    if (strlen (own) > PATH_MAX - SWEEP_FILES_LENGTH) {
        errno = ENAMETOOLONG;
        errorf (err,
                "%s: the paths of its files would be too long: move the experiment to a folder "
                "with a shorter path",
                own);
        goto fail;
    }
    s->dir = xstrdup (own);
    if (!(s->word = name_word (sweep_folder_name (s))) || inside_enter (own) < 0)
        out_of_memory ();
    snprintf (path, sizeof (path), "%s/experiment.conf", own);
    if (read_frozen (s, path, p, err) < 0)
        goto fail;
    snprintf (path, sizeof (path), "%s/log", own);
    if (!(s->log = log_create (path, err)) || sweep_sync (s, err) < 0
        || find_log_owner (s, err) < 0)
        goto fail;
    return s;
fail:
    sweep_close (s);
    return NULL;
}

void sweep_close (struct sweep *s)
{
    int e = errno;

    if (!s)
        return;
    for (long i = 0; i < s->ntrials; i++) {
        struct sweep_trial *t = &s->trials[i];
        json_decref (t->hparams);
        free (t->x);
        free (t->began);
        for (size_t k = 0; k < t->nmilestones; k++)
            free (t->milestones[k].values);
        free (t->milestones);
        free (t->failed);
        free (t->why);
        free (t->owner);
        free (t->host);
        free (t->gpus);
        conditions_free (&t->conditions);
    }
    for (size_t i = 0; i < s->nsubmits; i++)
        free (s->submits[i].job);
    for (size_t i = 0; i < s->nhosts; i++) {
        free (s->hosts[i].name);
        free (s->hosts[i].why);
    }
    faults_forget (s);
    conditions_free (&s->conditions);
    free (s->submits);
    free (s->last_action.by);
    free (s->hosts);
    strings_free (s->labels);
    strings_free (s->retired);
    free (s->trials);
    free (s->open);
    free (s->history);
    sweep_destroy_searcher (s);
    log_destroy (s->log);
    experiment_destroy (s->exp);
    if (s->dir)
        inside_leave (s->dir);
    free (s->frozen);
    free (s->logged_digest);
    free (s->id);
    free (s->code);
    free (s->root);
    free (s->provenance);
    free (s->word);
    free (s->dir);
    free (s);
    errno = e;
}
