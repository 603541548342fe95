/* SPDX-License-Identifier: Apache-2.0 */
/* A step that is a sweep runs an experiment of its own. */
#include "launcher/flow/run.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/flat.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

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

/* Open the experiment; NULL without a message if no attempt has created one. */
static struct sweep *open_sweep_of_step (const struct flow_scope *c)
{
    char home[PATH_MAX], found[PATH_MAX];
    struct sweep *s = NULL;

    sweep_find (c, home, found);
    if (*found)
        open_experiment (&(struct command_line){ .dir = home }, found, &s);
    return s;
}

bool flow_sweep_is_over (const struct flow_scope *c)
{
    struct sweep *s = open_sweep_of_step (c);
    bool over = s && s->state == SWEEP_COMPLETED;

    sweep_close (s);
    return over;
}

/* Its best trial becomes the outputs and values of the step. */
static void take_best_trial (const struct sweep *s, long trial, struct attempt_end *end)
{
    char checkpoint[PATH_MAX];
    json_t *file;

    end->outputs = json_object ();
    end->values = json_object ();
    flat_add (end->values, trial_hparams (s, sweep_trial (s, trial)), "");
    json_object_set_new (end->values, "experiment", json_string (s->dir));
    json_object_set_new (end->values, "trial", json_integer (trial));
    json_object_set_new (end->values, "metric",
                         finite_to_json (point_result (s, trial_point (s, trial), 0).value));
    if (best_checkpoint (s, trial, checkpoint, sizeof (checkpoint)) == 0
        && (file = flow_file (checkpoint, NULL)))
        json_object_set_new (end->outputs, "checkpoint", file);
}

int flow_sweep_take (const struct flow_scope *c, struct attempt_end *end, struct slurmdl_error *err)
{
    struct sweep *s = open_sweep_of_step (c);
    long best = s ? sweep_best (s) : 0;

    if (best)
        take_best_trial (s, best, end);
    else if (s)
        errorf (err, "%s: no trial has a result", s->dir);
    else
        errorf (err, "the sweep has created no experiment");
    sweep_close (s);
    errno = EINVAL;
    return best ? 0 : -1;
}

static int kill_sweep (const char *dir, void *arg)
{
    struct command c = { .no_errors = true };
    char dl[PATH_MAX], said[256];

    (void)arg;
    own_program (dl);
    command_add (&c, dl, NULL);
    command_add (&c, "kill", NULL);
    command_add (&c, "--", NULL);
    command_add (&c, dir, NULL);
    command_run (&c, NULL, said, sizeof (said));
    command_free (&c);
    return 0;
}

/* scancel of the step does not reach the workers, which run in jobs of their own. */
void flow_kill_sweeps (const struct flow_run *r)
{
    char home[PATH_MAX];

    for (size_t i = 0; i < r->flow->n; i++) {
        const struct flow_step *s = &r->flow->steps[i];
        long width = s->sweep ? flow_width (r, s) : 0;
        for (long k = 0; k < width; k++) {
            flow_path (home, r, s, k, "sweep", 0);
            each_experiment (home, kill_sweep, NULL);
        }
    }
}
