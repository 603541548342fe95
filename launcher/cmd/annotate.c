/* SPDX-License-Identifier: Apache-2.0 */
/* dl archive, label, exclude: notes on an experiment. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/user.h"
#include "runtime/base/utf8.h"

enum { LABEL_MAX = 63 };

/* Publish one event.  Prints errors and returns an exit status. */
static int put_mark (struct sweep *s, struct event event)
{
    struct slurmdl_error err = { "" };

    event.by = user_name ();
    return sweep_insist (s, event, NULL, NULL, &err) < 0 ? fail_on (s, &err) : EXIT_OK;
}

static bool can_archive (const struct sweep *s, const void *arg)
{
    (void)arg;
    return sweep_allows (s->state, EVENT_ARCHIVE);
}

static int archive_sweep (struct sweep *s, bool undo)
{
    struct slurmdl_error err = { "" };
    struct event event = { .op = EVENT_ARCHIVE, .by = user_name (), .off = undo };

    if (s->archived == !undo) {
        printf ("%s is %s archived\n", s->dir, undo ? "not" : "already");
        return EXIT_OK;
    }
    switch (sweep_insist (s, event, can_archive, NULL, &err)) {
    case PUBLISH_FAILED:
        return fail_on (s, &err);
    case PUBLISH_LATE:
        complain ("%s is %s: only an experiment that has ended can be archived", s->dir,
                  sweep_state_name (s->state));
        return EXIT_USAGE;
    case PUBLISH_DONE:
        break;
    }
    printf (undo ? "%s: shown again\n" : "%s: archived; 'dl ls --all' shows it\n", s->dir);
    return EXIT_OK;
}

int cmd_archive (const struct command_line *line)
{
    const struct mark_options *opt = line->options;
    struct sweep *s;
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    rv = archive_sweep (s, opt->undo);
    sweep_close (s);
    return rv;
}

static bool has_label (const struct sweep *s, const char *name)
{
    for (char **l = s->labels; l && *l; l++)
        if (!strcmp (*l, name))
            return true;
    return false;
}

/* dl ls separates labels by commas. */
static int check_label (const char *name)
{
    bool good = is_utf8 (name) && *name && strlen (name) <= LABEL_MAX;

    for (const char *c = name; *c; c++)
        good = good && *c != ',' && !isspace ((unsigned char)*c) && !iscntrl ((unsigned char)*c);
    if (good)
        return EXIT_OK;
    complain ("label: '%.80s' must be 1 to %d bytes of UTF-8 without commas and blanks", name,
              LABEL_MAX);
    return EXIT_USAGE;
}

static int label_sweep (struct sweep *s, const char *name, bool undo)
{
    int rv = EXIT_OK;

    if (has_label (s, name) == !undo) {
        printf ("%s %s the label %s\n", s->dir, undo ? "does not have" : "already has", name);
        return EXIT_OK;
    }
    rv = put_mark (s, (struct event){ .op = EVENT_LABEL, .label = name, .off = undo });
    if (rv == EXIT_OK)
        printf ("%s: label %s%s\n", s->dir, name, undo ? " removed" : "");
    return rv;
}

int cmd_label (const struct command_line *line)
{
    const struct mark_options *opt = line->options;
    struct sweep *s;
    int rv = EXIT_OK;

    for (int i = 1; i < line->nargs && rv == EXIT_OK; i++)
        rv = check_label (line->args[i]);
    if (rv || (rv = open_experiment (line, line->args[0], &s)))
        return rv;
    for (int i = 1; i < line->nargs && rv == EXIT_OK; i++)
        rv = label_sweep (s, line->args[i], opt->undo);
    sweep_close (s);
    return rv;
}

static int exclude_host (struct sweep *s, const char *name, bool undo)
{
    const struct host *h = sweep_host (s, name);
    bool is_out = h && h->why;
    int rv;

    if (is_out == !undo) {
        printf ("%s: %s is %s excluded%s%s\n", s->dir, name, undo ? "not" : "already",
                is_out ? ": " : "", is_out ? h->why : "");
        return EXIT_OK;
    }
    rv = put_mark (
        s, (struct event){
               .op = EVENT_EXCLUDE, .host = name, .why = undo ? NULL : "by hand", .off = undo });
    if (rv == EXIT_OK)
        printf (undo ? "%s: attempts may start on %s again\n"
                     : "%s: no further attempt starts on %s\n",
                s->dir, name);
    return rv;
}

static bool is_host (const char *name)
{
    for (const char *c = name; *c; c++)
        if (!isgraph ((unsigned char)*c) || (unsigned char)*c > 0x7f || strchr ("/,[]", *c))
            return false;
    return *name;
}

int cmd_exclude (const struct command_line *line)
{
    const struct mark_options *opt = line->options;
    bool named = line->nargs == 2;
    const char *host = line->args[named];
    struct sweep *s;
    int rv;

    if (!is_host (host)) {
        complain ("exclude: '%.80s' is not a machine name", host);
        return EXIT_USAGE;
    }
    if (!named && experiment_is_there (line, host)) {
        complain ("exclude: the machine is missing: dl exclude %s HOST", host);
        return EXIT_USAGE;
    }
    if ((rv = open_experiment (line, named ? line->args[0] : NULL, &s)))
        return rv;
    rv = exclude_host (s, host, opt->undo);
    sweep_close (s);
    return rv;
}
