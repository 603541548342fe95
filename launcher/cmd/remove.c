/* SPDX-License-Identifier: Apache-2.0 */
/* dl rm: remove experiments, and nothing else. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/membership/peer.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "runtime/base/error.h"
#include "runtime/storage/link.h"

enum { TRIES = 3 };

/* ---- a tree ---- */

static int remove_entries (DIR *folder, dev_t dev);

/* A link is removed, not followed, and what is mounted there stays. */
static int remove_folder (int at, const char *name, dev_t dev)
{
    int fd = openat (at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;
    DIR *folder;
    int rv = -1;
    int e;

    if (fd < 0)
        return -1;
    if (fstat (fd, &st) < 0 || st.st_dev != dev) {
        close (fd);
        errno = st.st_dev != dev ? EXDEV : errno;
        return -1;
    }
    if (!(folder = fdopendir (fd))) {
        close (fd);
        return -1;
    }
    rv = remove_entries (folder, dev);
    e = errno;
    closedir (folder);
    errno = e;
    return rv < 0 ? -1 : unlinkat (at, name, AT_REMOVEDIR);
}

static int remove_entries (DIR *folder, dev_t dev)
{
    int fd = dirfd (folder);
    struct dirent *d;
    int rv = 0;

    while (rv == 0 && (d = readdir (folder))) {
        if (!strcmp (d->d_name, ".") || !strcmp (d->d_name, ".."))
            continue;
        rv = unlinkat (fd, d->d_name, 0);
        if (rv < 0 && errno == EISDIR)
            rv = remove_folder (fd, d->d_name, dev);
        if (rv < 0 && errno == ENOENT)
            rv = 0;
    }
    return rv;
}

/* Under its hidden name no worker and no other command finds it. */
int remove_experiment (const char *dir, struct slurmdl_error *err)
{
    const char *base = strrchr (dir, '/') + 1;
    char visible[PATH_MAX];
    char hidden[PATH_MAX];
    struct stat st;
    int rv = -1;

    snprintf (visible,
              sizeof (visible),
              "%.*s.removed-%s",
              (int)(base - dir),
              dir,
              base);
    link_tmp_name (hidden, sizeof (hidden), visible);
    if (lstat (dir, &st) < 0 || rename (dir, hidden) < 0)
        return errorf (err, "%s: cannot remove: %s", dir, strerror (errno));
    /* a listing may pass over entries when others go, on some file systems */
    for (int i = 0; i < TRIES && rv < 0 && (i == 0 || errno == ENOTEMPTY); i++)
        rv = remove_folder (AT_FDCWD, hidden, st.st_dev);
    if (rv == 0)
        return 0;
    return errorf (err,
                   "%s: cannot remove all of it: %s; the rest is %s",
                   dir,
                   strerror (errno),
                   hidden);
}

/* ---- whether it may be ---- */

/* Signs of life of other machines take two heartbeats to tell. */
static int check_workers (const char *dir, double seconds, bool force)
{
    struct slurmdl_error err = { "" };
    long n = force ? 0 : peer_count (dir, seconds, &err);

    if (n == 0 || (n < 0 && errno == ENOENT))
        return EXIT_OK;
    if (n < 0)
        return fail (&err);
    complain ("%s: %ld worker%s at work on it; --force removes it "
              "nevertheless",
              dir,
              n,
              n == 1 ? " is" : "s are");
    return EXIT_BUSY;
}

static int check_sweep (struct sweep *s, bool force)
{
    if (force) {
        kill_experiment (s);
        return EXIT_OK;
    }
    if (!sweep_has_ended (s) && s->state != SWEEP_NEW) {
        complain ("%s is %s: 'dl stop' ends it; --force removes it "
                  "nevertheless",
                  s->dir,
                  sweep_state_name (s->state));
        return EXIT_BUSY;
    }
    return check_workers (s->dir, 2 * (double)s->exp->heartbeat, force);
}

static int check (const char *dir, bool force)
{
    struct slurmdl_error err = { "" };
    struct problems p;
    struct sweep *s;
    int rv = EXIT_OK;

    if (problems_open (&p) < 0)
        return EXIT_IO;
    if ((s = sweep_open (dir, &p, &err)))
        rv = check_sweep (s, force);
    else if (!force) {
        complain ("%s: cannot be read (%s); --force removes it nevertheless",
                  dir,
                  err.text);
        rv = EXIT_DAMAGED;
    }
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return rv;
}

/* ---- the command ---- */

/* Only its full name: the newest of a name is too easily another one. */
static int find (const struct settings *st, const char *name, char *dir)
{
    char path[PATH_MAX];
    char found[PATH_MAX];
    struct stat s;
    size_t n;

    snprintf (path, sizeof (path), "%s", name);
    for (n = strlen (path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (lstat (path, &s) < 0 && !strchr (path, '/'))
        snprintf (path, sizeof (path), "%s/%.200s", st->dir, name);
    if (lstat (path, &s) < 0) {
        complain ("rm: no experiment '%s' in %s (its full name is needed)",
                  name,
                  st->dir);
        return EXIT_NOT_FOUND;
    }
    if (S_ISLNK (s.st_mode)) {
        complain ("rm: %s is a link; name the experiment's own folder", path);
        return EXIT_USAGE;
    }
    snprintf (found, sizeof (found), "%.4000s/experiment.conf", path);
    if (S_ISDIR (s.st_mode) && access (found, F_OK) == 0
        && realpath (path, dir))
        return EXIT_OK;
    complain ("rm: %s is no experiment", path);
    return EXIT_NOT_FOUND;
}

static int rm (const struct settings *st, const char *name)
{
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    int rv = find (st, name, dir);

    if (rv == EXIT_OK)
        rv = check (dir, st->force);
    if (rv)
        return rv;
    if (remove_experiment (dir, &err) < 0) {
        complain ("%s", err.text);
        return EXIT_IO;
    }
    printf ("%s: removed\n", dir);
    return EXIT_OK;
}

/* One that cannot be removed does not keep the others. */
int cmd_rm (const struct settings *st)
{
    int status = EXIT_OK;

    for (int i = 0; i < st->nargs; i++) {
        int rv = rm (st, st->args[i]);
        if (status == EXIT_OK)
            status = rv;
    }
    return status;
}
