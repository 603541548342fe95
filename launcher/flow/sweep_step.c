/* SPDX-License-Identifier: Apache-2.0 */
/* A step that is a sweep runs an experiment of its own. */
#include "launcher/flow/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/config/flat.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { SAID_MAX = 64 << 10 };

/* Find the experiment that an earlier attempt created; "" if there is none.  If two attempts at
 * once created one each, all later ones agree on the first.
 */
static void sweep_find (const struct flow_scope *c, char home[PATH_MAX], char found[PATH_MAX])
{
    char first[NAME_MAX + 1] = "";
    struct dirent *e;
    DIR *d;

    flow_path (home, c->r, c->s, c->task, "sweep", 0);
    *found = '\0';
    if (folder_create (home, NULL) < 0 || !(d = opendir (home)))
        return;
    while ((e = readdir (d)))
        if (*e->d_name != '.' && (!*first || strcmp (e->d_name, first) < 0))
            snprintf (first, sizeof (first), "%s", e->d_name);
    closedir (d);
    if (*first)
        snprintf (found, PATH_MAX, "%s/%s", home, first);
}

int flow_sweep_command (const struct flow_scope *c, char ***argv, struct slurmdl_error *err)
{
    char dl[PATH_MAX], home[PATH_MAX], found[PATH_MAX];
    char *text;

    own_program (dl);
    sweep_find (c, home, found);
    strings_add (argv, dl);
    strings_add (argv, *found ? "resume" : "run");
    if (getenv ("DL_FLOW_LOCAL"))
        strings_add (argv, "--local");
    if (*found) {
        strings_add (argv,
                     "--wait"); /* its workers may have outlived the attempt that started them */
        strings_add (argv, "--");
        strings_add (argv, found);
        return 0;
    }
    strings_add (argv, "--dir");
    strings_add (argv, home);
    for (char **s = c->s->set; s && *s; s++) {
        if (!(text = flow_text (c, *s, err)))
            return -1;
        strings_add (argv, "--set");
        strings_add (argv, text);
        free (text);
    }
    if (!(text = flow_text (c, c->s->sweep, err)))
        return -1;
    strings_add (argv, "--");
    strings_add (argv, text);
    free (text);
    return 0;
}

bool flow_sweep_is_over (const struct flow_scope *c)
{
    struct command wait = { .no_errors = true };
    char dl[PATH_MAX], home[PATH_MAX], found[PATH_MAX];
    char said[256];
    int status;

    own_program (dl);
    sweep_find (c, home, found);
    command_add (&wait, dl, NULL);
    command_add (&wait, "wait", NULL);
    command_add (&wait, "--timeout=0", NULL);
    command_add (&wait, "--", NULL);
    command_add (&wait, found, NULL);
    status = *found ? command_run (&wait, NULL, said, sizeof (said)) : -1;
    command_free (&wait);
    return status == 0;
}

/* Ask `dl best --json` for the best trial. */
static json_t *best_of_sweep (const char *experiment, struct slurmdl_error *err)
{
    struct command c = { .no_errors = true };
    char dl[PATH_MAX];
    char *said = xmalloc (SAID_MAX);
    json_t *best = NULL;

    own_program (dl);
    command_add (&c, dl, NULL);
    command_add (&c, "best", NULL);
    command_add (&c, "--json", NULL);
    command_add (&c, "--", NULL);
    command_add (&c, experiment, NULL);
    if (command_run (&c, NULL, said, SAID_MAX) == 0)
        best = json_loads (said, 0, NULL);
    command_free (&c);
    free (said);
    errno = EINVAL;
    if (!best)
        errorf (err, "%s: no trial has a result", experiment);
    return best;
}

int flow_sweep_take (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err)
{
    char home[PATH_MAX], found[PATH_MAX];
    const char *checkpoint;
    json_t *best, *file, *v;

    sweep_find (c, home, found);
    if (!*found || !(best = best_of_sweep (found, err)))
        return errorf (err, "the sweep has created no experiment");
    end->outputs = json_object ();
    end->values = json_object ();
    flat_add (end->values, json_object_get (best, "hyperparameters"), "");
    json_object_set_new (end->values, "experiment", json_string (found));
    json_object_set (end->values, "trial", json_object_get (best, "trial"));
    v = json_object_get (best, "metrics");
    json_object_set (end->values, "metric", json_object_iter_value (json_object_iter (v)));
    checkpoint = json_string_value (json_object_get (best, "checkpoint"));
    if (checkpoint && (file = flow_file (checkpoint, NULL)))
        json_object_set_new (end->outputs, "checkpoint", file);
    json_decref (best);
    return 0;
}

/* scancel of the step does not reach the workers, which run in jobs of their own. */
void flow_kill_sweeps (const struct flow_run *r)
{
    for (size_t i = 0; i < r->flow->n; i++) {
        const struct flow_step *s = &r->flow->steps[i];
        long width = s->sweep ? flow_width (r, s) : 0;
        for (long k = 0; k < width; k++) {
            struct command c = { .no_errors = true };
            char home[PATH_MAX], option[PATH_MAX + 8], dl[PATH_MAX], said[256];
            own_program (dl);
            flow_path (home, r, s, k, "sweep", 0);
            snprintf (option, sizeof (option), "--dir=%s", home);
            if (access (home, F_OK) < 0)
                continue;
            command_add (&c, dl, NULL);
            command_add (&c, "kill", NULL);
            command_add (&c, option, NULL);
            command_run (&c, NULL, said, sizeof (said));
            command_free (&c);
        }
    }
}
