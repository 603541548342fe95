/* SPDX-License-Identifier: Apache-2.0 */
/* dl rm: remove experiments, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/lifecycle.h"
#include "launcher/code/store.h"
#include "launcher/config/diagnostics.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trust.h"
#include "launcher/sys/say.h"

/* Whether workers on other machines live is known after two heartbeats. */
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
              dir, n, n == 1 ? " is" : "s are");
    return EXIT_BUSY;
}

static int check_sweep (struct sweep *s, bool force)
{
    if (force) {
        kill_experiment (s);
        return EXIT_OK;
    }
    if (sweep_has_lost_log (s)) {
        complain ("%s/log: lost, but there are trials; --force removes them "
                  "nevertheless",
                  s->dir);
        return EXIT_DAMAGED;
    }
    if (!sweep_has_ended (s) && s->state != SWEEP_NEW) {
        complain ("%s is %s: 'dl stop' ends it; --force removes it "
                  "nevertheless",
                  s->dir, sweep_state_name (s->state));
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
    if ((s = sweep_open (dir, &p, &err))) {
        if ((rv = check_sweep (s, force)) == EXIT_OK)
            record_remove (s);
    } else if (!force) {
        complain ("%s: cannot be read (%s); --force removes it nevertheless", dir, err.text);
        rv = EXIT_DAMAGED;
    }
    sweep_close (s);
    problems_close (&p);
    free (p.text);
    return rv;
}

/* Only its full name: the newest of a name is too easily another one. */
static int find (const struct command_line *line, const char *name, char *dir)
{
    char path[PATH_MAX];
    char found[PATH_MAX + 32];
    struct stat s;
    size_t n;

    if (snprintf (path, sizeof (path), "%s", name) >= (int)sizeof (path)) {
        complain ("rm: %s: the path is too long", name);
        return EXIT_NOT_FOUND;
    }
    for (n = strlen (path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    if (lstat (path, &s) < 0 && !strchr (path, '/'))
        snprintf (path, sizeof (path), "%s/%s", line->dir, name);
    if (lstat (path, &s) < 0) {
        bool meant = experiment_find (line, name, found, PATH_MAX) == 0;
        complain ("rm: no experiment '%s' in %s (its full name is needed%s%s)", name, line->dir,
                  meant ? ": the newest is " : "", meant ? found : "");
        return EXIT_NOT_FOUND;
    }
    if (S_ISLNK (s.st_mode)) {
        complain ("rm: %s is a link; name the experiment's own folder", path);
        return EXIT_USAGE;
    }
    snprintf (found, sizeof (found), "%s/experiment.conf", path);
    if (S_ISDIR (s.st_mode) && access (found, F_OK) == 0 && realpath (path, dir))
        return EXIT_OK;
    complain ("rm: %s is not an experiment", path);
    return EXIT_NOT_FOUND;
}

static int rm (const struct command_line *line, const char *name)
{
    const struct rm_options *opt = line->options;
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    int rv = find (line, name, dir);

    if (rv == EXIT_OK)
        rv = check (dir, opt->force);
    if (rv)
        return rv;
    if (sweep_remove (dir, &err) < 0) {
        complain ("%s", err.text);
        return EXIT_IO;
    }
    store_clean (dir);
    printf ("%s: removed\n", dir);
    return EXIT_OK;
}

/* One that cannot be removed does not keep the others. */
int cmd_rm (const struct command_line *line)
{
    int status = EXIT_OK;

    for (int i = 0; i < line->nargs; i++) {
        int rv = rm (line, line->args[i]);
        if (status == EXIT_OK)
            status = rv;
    }
    return status;
}
