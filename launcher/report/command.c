/* SPDX-License-Identifier: Apache-2.0 */
/* The command dl report. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/report/assets.h"
#include "launcher/report/page.h"
#include "launcher/report/report.h"
#include "launcher/session/open.h"
#include "launcher/sweep/states.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"

/* s between two files of --watch, and its bounds */
static const double every = 15, least = 0.2, most = 86400;

struct job {
    struct sweep **list;
    struct rows *rows; /* that were read the last time, of each */
    size_t n;
    char path[PATH_MAX];
    bool live;
    double seconds;
};

static int open_all (struct job *j, const struct settings *st)
{
    size_t n = st->nargs > 0 ? (size_t)st->nargs : 1;
    int rv = EXIT_OK;

    j->list = calloc (n, sizeof (struct sweep *));
    j->rows = calloc (n, sizeof (*j->rows));
    if (!j->list || !j->rows) {
        complain ("out of memory");
        return EXIT_IO;
    }
    while (rv == EXIT_OK && j->n < n) {
        rv = open_experiment (
            st, st->nargs > 0 ? st->args[j->n] : NULL, &j->list[j->n]);
        j->n += rv == EXIT_OK;
    }
    return rv;
}

static void close_all (struct job *j)
{
    for (size_t k = 0; k < j->n; k++) {
        sweep_close (j->list[k]);
        rows_destroy (&j->rows[k]);
    }
    free (j->list);
    free (j->rows);
}

/* "NAME.html" in the current folder, if the user gives none. */
static int find_path (struct job *j, const char *output)
{
    const char *dir = j->list[0]->dir, *name = strrchr (dir, '/');
    char found[PATH_MAX];
    struct stat st;

    name = name && name[1] ? name + 1 : dir;
    if (output)
        snprintf (j->path,
                  sizeof (j->path),
                  "%s",
                  user_may_follow (output) && realpath (output, found)
                      ? found
                      : output);
    else
        snprintf (j->path, sizeof (j->path), "%s.html", name);
    if (!user_may_follow (j->path) || stat (j->path, &st) < 0
        || S_ISREG (st.st_mode))
        return EXIT_OK;
    complain ("--output: %s is no plain file", j->path);
    return EXIT_USAGE;
}

static bool in_progress (const struct job *j)
{
    for (size_t k = 0; k < j->n; k++)
        if (!sweep_has_ended (j->list[k]))
            return true;
    return false;
}

static int fill_page (struct job *j, FILE *f, struct slurmdl_error *err)
{
    struct report_data d;
    int rv = data_read (&d, j->list, j->n, j->rows, err);

    if (j->live && in_progress (j))
        d.report.live = j->seconds;
    if (rv == 0)
        rv = page_put (f, &d, err);
    int e = errno;
    data_free (&d);
    errno = e;
    return rv;
}

static int write_page (struct job *j, struct slurmdl_error *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream (&text, &size);
    int rv = f ? fill_page (j, f, err) : errorf (err, "out of memory");

    if (f && fclose (f) != 0 && rv == 0)
        rv = errorf (err, "out of memory");
    if (rv == 0)
        rv = publish_replace (j->path, text, size, err);
    int e = errno;
    free (text);
    errno = e;
    return rv;
}

/* Returns 1 if anything is new, 0, -1. */
static int sync_all (struct job *j, struct slurmdl_error *err)
{
    int rv = 0;

    for (size_t k = 0; k < j->n; k++) {
        int n = sweep_sync (j->list[k], err);
        if (n < 0)
            return -1;
        rv = rv || n > 0;
    }
    return rv;
}

/* Also where no event is new: trials log as they train. */
static int watch (struct job *j, struct slurmdl_error *err)
{
    while (in_progress (j)) {
        poll (NULL, 0, (int)(j->seconds * 1000));
        if (sync_all (j, err) < 0 || write_page (j, err) < 0)
            return -1;
    }
    return 0;
}

int cmd_report (const struct settings *st)
{
    struct job j = { .live = st->watch };
    struct slurmdl_error err = { "" };
    int rv;

    j.seconds =
        st->seconds > 0 ? fmin (fmax (st->seconds, least), most) : every;
    if (!asset_template) {
        complain ("this dl was built without D3, which dl report needs: "
                  "install node-d3 and build again");
        return EXIT_FAILED;
    }
    if ((rv = open_all (&j, st)) == EXIT_OK
        && (rv = find_path (&j, st->output)) == EXIT_OK) {
        if (write_page (&j, &err) < 0) {
            rv = fail (&err);
        } else {
            puts (st->output ? st->output : j.path);
            fflush (stdout);
            if (j.live && watch (&j, &err) < 0)
                rv = fail (&err);
        }
    }
    close_all (&j);
    return rv;
}
