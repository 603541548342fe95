/* SPDX-License-Identifier: Apache-2.0 */
/* Write an experiment as other tools have it, with the Python package. */
#include "launcher/export/tool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/export/stream.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/python.h"
#include "launcher/sys/say.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"
#include "runtime/storage/own_folder.h"

static const char *const tool_formats[] = { "tensorboard", "wandb",   "mlflow",
                                            "optuna",      "parquet", NULL };

bool tool_has_format (const char *name)
{
    return strings_contain (tool_formats, name);
}

enum { ID_MAX = 4096 };

/* Another experiment of the same name is not to be taken for this one. */
static int claim_name (const struct sweep *s,
                       const char *folder,
                       struct slurmdl_error *err)
{
    char path[PATH_MAX];
    char *there;
    int rv = -1;

    if (snprintf (path,
                  sizeof (path),
                  "%s/%s.experiment",
                  folder,
                  sweep_folder_name (s))
        >= (int)sizeof (path)) {
        errno = ENAMETOOLONG;
        return errorf (err, "%s: %s", folder, strerror (errno));
    }
    if (publish_if_absent (path, s->id, strlen (s->id), err) < 0
        || !(there = file_read (path, ID_MAX, NULL, err)))
        return -1;
    if (!strcmp (there, s->id))
        rv = 0;
    else {
        errno = EINVAL;
        errorf (err,
                "%s has another experiment with the name %.60s: name "
                "another folder with --output",
                folder,
                sweep_folder_name (s));
    }
    free (there);
    return rv;
}

static int open_folder (const struct sweep *s,
                        const char *given,
                        char folder[PATH_MAX],
                        struct slurmdl_error *err)
{
    struct stat st;

    if (own_folder_make (given, 0755, err) < 0)
        return -1;
    if (!realpath (given, folder) || stat (folder, &st) < 0)
        return errorf (err, "%s: %s", given, strerror (errno));
    /* the tools' libraries follow links, and know no others */
    if (!user_writes_alone (&st)) {
        errno = EPERM;
        return errorf (err,
                       "%s: others may write there: chmod go-w, or name "
                       "another folder with --output",
                       given);
    }
    return claim_name (s, folder, err);
}

/* What has failed leaves no folder in which there is nothing. */
static void remove_empty (const struct sweep *s, const char *folder)
{
    char claim[NAME_MAX + 1], path[PATH_MAX];
    struct dirent *e;
    DIR *d = opendir (folder);
    int others = 0;

    snprintf (claim, sizeof (claim), "%s.experiment", sweep_folder_name (s));
    while (d && (e = readdir (d)))
        others += strcmp (e->d_name, ".") && strcmp (e->d_name, "..")
                  && strcmp (e->d_name, claim);
    if (d)
        closedir (d);
    if (!d || others > 0
        || snprintf (path, sizeof (path), "%s/%s", folder, claim)
               >= (int)sizeof (path))
        return;
    unlink (path);
    rmdir (folder);
}

struct tool {
    pid_t pid;
    FILE *to;
};

static int start (struct tool *t,
                  const char *format,
                  char *folder,
                  struct slurmdl_error *err)
{
    char *args[] = { (char *)format, folder, NULL };
    int fds[2];

    if (pipe2 (fds, O_CLOEXEC) < 0)
        return errorf (err, "pipe: %s", strerror (errno));
    t->pid = python_start ("slurmdl.export", args, fds[0], err);
    close (fds[0]);
    if (t->pid >= 0 && (t->to = fdopen (fds[1], "w")))
        return 0;
    if (t->pid >= 0)
        errorf (err, "pipe: %s", strerror (errno));
    close (fds[1]);
    return -1;
}

/* Its exit status, after a line if it said none. */
static int finish (struct tool *t)
{
    if (t->to)
        fclose (t->to);
    return python_wait (t->pid, "dl export --format");
}

/* The reading of a long experiment takes time: at most a fifth of all. */
static int
follow (struct sweep *s, struct export_stream *x, double every, bool *ended)
{
    struct slurmdl_error err = { "" };
    double start = monotonic ();
    int rv = stream_changes (x);

    *ended = every <= 0 || sweep_has_ended (s);
    if (rv < 0 || *ended)
        return rv;
    every = fmax (every, 4 * (monotonic () - start));
    poll (NULL, 0, (int)(fmin (every, 86400) * 1000));
    if (sweep_sync (s, &err) >= 0)
        return 0;
    fail (&err);
    return -1;
}

static int feed (struct tool *t, struct sweep *s, double every)
{
    struct export_stream x;
    bool ended = false;
    int rv = stream_begin (&x, t->to, s);

    while (rv == 0 && !ended)
        rv = follow (s, &x, every, &ended);
    if (rv == 0)
        stream_end (&x);
    stream_free (&x);
    return rv;
}

int tool_export (struct sweep *s,
                 const char *format,
                 const char *output,
                 double every)
{
    struct slurmdl_error err = { "" };
    struct tool t = { 0 };
    char given[PATH_MAX], folder[PATH_MAX];
    bool is_new;
    int rv, fed;

    snprintf (given,
              sizeof (given),
              "%s%s%s",
              output ? output : sweep_folder_name (s),
              output ? "" : ".",
              output ? "" : format);
    is_new = access (given, F_OK) < 0;
    if (open_folder (s, given, folder, &err) < 0
        || start (&t, format, folder, &err) < 0)
        return fail (&err);
    signal (SIGPIPE, SIG_IGN);
    fed = feed (&t, s, every);
    rv = finish (&t);
    if (rv == EXIT_OK && fed < 0) {
        complain ("%s: could not be read to its end", s->dir);
        rv = EXIT_IO;
    }
    if (rv == EXIT_OK)
        puts (given);
    else if (is_new)
        remove_empty (s, folder);
    return rv;
}
