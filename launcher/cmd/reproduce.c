/* SPDX-License-Identifier: Apache-2.0 */
/* dl reproduce: train a trial again and compare its metric. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/code/code.h"
#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/job_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/software_settings.h"
#include "launcher/slurm/slurm.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/create.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/metrics.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/take_file.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/worker.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"
#include "searcher/searcher.h"

/* ---- checks ---- */

static int check_trial_result (const struct sweep *s, long number)
{
    const struct sweep_trial *t = sweep_trial (s, number);

    if (!t || t->length == 0)
        complain ("%s: %s%.0ld has no result to compare with", s->dir,
                  t ? "trial " : "the experiment", t ? number : 0);
    else
        return EXIT_OK;
    return EXIT_USAGE;
}

/* ---- trials with several ranks ---- */

/* Replace this process with 'salloc dl reproduce'.  Returns only on failure. */
static int reproduce_in_allocation (struct sweep *s, long number, bool trust)
{
    static char dl[PATH_MAX], trial[24];
    struct command c = { 0 };

    own_program (dl);
    snprintf (trial, sizeof (trial), "%ld", number);
    s->exp->resources->lanes = 1;
    executor_add_resources (&c, s->exp, s->memory);
    command_add (&c, dl, NULL);
    command_add (&c, "reproduce", NULL);
    if (trust)
        command_add (&c, "--trust", NULL);
    command_add (&c, s->dir, NULL);
    command_add (&c, trial, NULL);
    printf ("trial %ld has %lld ranks: allocating a job with salloc\n", number,
            (long long)(s->exp->resources->nodes * s->exp->resources->ranks));
    fflush (stdout);
    setenv ("DL_PIN", s->pin, 1);
    slurm_allocate (&c);
    complain ("salloc: %s: trials of several ranks need Slurm", strerror (errno));
    command_free (&c);
    return EXIT_SLURM;
}

/* ---- the files that the trial started from ---- */

/* Find the checkpoint that the trial started from: another trial's, or the one that
 * this fork was created with.
 */
static int find_source_checkpoint (struct sweep *s, long number, struct slurmdl_error *err)
{
    const struct sweep_trial *t = sweep_trial (s, number);
    struct experiment *e = s->exp;
    char dir[PATH_MAX];
    long attempt = 1;
    int64_t length;

    if (!t->from && !e->fork->length)
        return 0;
    snprintf (dir, sizeof (dir), "%s/source", s->dir);
    if (t->from) {
        e->fork->length = t->from_length;
        attempt = trial_milestone (sweep_trial (s, t->from), t->from_length);
        snprintf (dir, sizeof (dir), "%s/trials/%04ld", s->dir, t->from);
    }
    e->fork->file = slurmdl_checkpoint_find (dir, e->fork->length, attempt, &length);
    if (e->fork->file && length == e->fork->length)
        return 0;
    if (!t->from) {
        list_trial_files (dir, &e->fork->shared);
        fork_source_dir (dir, sizeof (dir), s->dir);
        list_trainer_files (dir, &e->fork->files);
        if (e->fork->files || e->fork->shared)
            return 0;
    }
    errno = ENOENT;
    return errorf (err,
                   "%s: trial %ld started from the checkpoint of %s%.0ld at "
                   "length %lld, which no longer exists, so the trial cannot be "
                   "trained again",
                   s->dir, number, t->from ? "trial " : "the experiment that this is a fork of",
                   t->from, (long long)e->fork->length);
}

/* If there are several nodes, use the directory of the experiments, which all of them
 * can see.
 */
static int open_place (struct try_run *t, struct sweep *s, long number, struct slurmdl_error *err)
{
    char above[PATH_MAX];

    snprintf (above, sizeof (above), "%.*s", (int)(strrchr (s->dir, '/') - s->dir), s->dir);
    if (try_run_open (t, s->exp, number, s->exp->resources->nodes > 1 ? above : NULL, err) < 0)
        return -1;
    return s->exp->fork->file || s->exp->fork->files || s->exp->fork->shared
               ? fork_source_publish (s->exp, t->sweep.dir, err)
               : 0;
}

/* ---- the code ---- */

/* Unpack a new copy of the frozen code, because trials may have changed the
 * experiment's copy.
 */
static int take_frozen_code (struct sweep *s, struct try_run *t, struct slurmdl_error *err)
{
    struct code_archive a;
    int rv;

    if (!s->code) {
        printf ("code: not frozen; using what is in %s now\n", s->exp->dir);
        return 0;
    }
    if (store_get (s->dir, s->code, &a, err) < 0)
        return -1;
    rv = try_run_take_code (t, s->root, &a, err);
    code_archive_free (&a);
    if (rv == 0)
        printf ("code: %.12s, as it was frozen\n", s->code);
    return rv;
}

/* For a large image, dl does not compute a digest, because that would take longer than
 * the training.
 */
static void compare_image (const struct sweep *s)
{
    json_t *record = s->provenance && s->exp->software->image ? provenance_read (s) : NULL;

    if (software_image_differs (record))
        complain (
            "%s: the image %s has changed since the experiment was created (dl show --provenance)",
            s->dir, s->exp->software->image);
    json_decref (record);
}

/* ---- the metric ---- */

/* Return the value that the original trial had at this length. */
static double value_at_length (const struct sweep *s, const struct sweep_trial *t, int64_t length,
                               size_t i)
{
    for (size_t k = 0; k < t->nmilestones; k++)
        if (t->milestones[k].length == length)
            return sweep_metrics (s) > 1 ? t->milestones[k].values[i] : t->milestones[k].metric;
    return NAN;
}

/* Print the segments and attempts that the value took, as "3 segments, 4 attempts".
 * Returns whether there was more than one of either.
 */
static bool pieces_text (const struct sweep_trial *t, int64_t length, char *buf, size_t size)
{
    long attempts = trial_milestone (t, length), segments = 0;

    while ((size_t)segments < t->nmilestones && t->milestones[segments].length <= length)
        segments++;
    snprintf (buf, size, "%ld segment%s, %ld attempt%s", segments, segments == 1 ? "" : "s",
              attempts, attempts == 1 ? "" : "s");
    return segments > 1 || attempts > 1;
}

/* Print why the values may differ. */
static void print_pieces_note (const struct sweep_trial *t, int64_t length)
{
    char text[64];

    if (pieces_text (t, length, text, sizeof (text)))
        printf ("the trial was trained in pieces (%s), this one at once: the values match only if "
                "checkpoints also restore the state of the random number generators and of the "
                "data loader; a script that seeds itself at each start cannot match\n",
                text);
}

static bool values_are_same (double a, double b)
{
    return a == b || (isnan (a) && isnan (b));
}

static int compare_metrics (const struct try_run *t, const struct sweep *s)
{
    const struct sweep_trial *old = sweep_trial (s, t->attempt.trial);
    struct failure_class v = { .why = "" };
    double values[OBJECTIVES_MAX];
    bool same = true;
    int64_t step;

    if (s->exp->job->is_given && t->status == 0
        && isnan (value_at_length (s, old, t->attempt.length, 0))
        && attempt_metrics (&t->attempt, &step, values) < 0) {
        puts ("reproduced: it succeeded, and logged no metric, as before");
        return EXIT_OK;
    }
    if (!WIFEXITED (t->status) || WEXITSTATUS (t->status) != 0
        || attempt_metrics (&t->attempt, &step, values) < 0) {
        failure_classify (&t->attempt, t->status, false, NULL, &v);
        printf ("not reproduced: no result: %s\n", v.why);
        return EXIT_FAILED;
    }
    metric_summarise (&t->attempt, values);
    for (size_t i = 0; i < sweep_metrics (s); i++) {
        double then = value_at_length (s, old, t->attempt.length, i);
        bool equal = values_are_same (values[i], then);
        printf ("%s: %s is %.9g at length %lld, and was %.9g\n",
                equal ? "reproduced" : "not reproduced", sweep_metric (s, i), values[i],
                (long long)t->attempt.length, then);
        same &= equal;
    }
    if (!same)
        print_pieces_note (old, t->attempt.length);
    return same ? EXIT_OK : EXIT_FAILED;
}

/* ---- the command ---- */

static int run_again (struct sweep *s, long number, bool dry_run)
{
    struct slurmdl_error err = { "" };
    const struct sweep_trial *old = sweep_trial (s, number);
    struct try_run t;
    char pieces[64];
    int rv;

    if (find_source_checkpoint (s, number, &err) < 0)
        return fail (&err);
    rv = open_place (&t, s, number, &err);
    if (rv == 0 && !dry_run)
        rv = take_frozen_code (s, &t, &err);
    if (rv == 0) {
        t.trial->x = old->x;
        t.trial->target = t.attempt.length = trial_result (s, number, 0).length;
        pieces_text (old, t.attempt.length, pieces, sizeof (pieces));
        printf ("trial %ld of %s, length %lld (%s)\n", number, s->dir, (long long)t.attempt.length,
                pieces);
        try_run_print_command (&t);
        software_print (t.sweep.exp->software);
        compare_image (s);
        rv = dry_run ? 0 : try_run_train (&t, &err);
    }
    if (rv < 0)
        rv = fail (&err);
    else if (!dry_run)
        rv = compare_metrics (&t, s);
    try_run_close (&t);
    return rv;
}

int cmd_reproduce (const struct command_line *line)
{
    const struct reproduce_options *opt = line->options;
    struct sweep *s;
    long number;
    int rv = open_to_run (line, opt->trust, line->args[0], &s);

    if (rv)
        return rv;
    number = s->exp->job->is_given ? 1 : sweep_best (s);
    s->exp->fork->owner = opt->trust ? (uid_t)ANYBODY : s->owner;
    if (line->nargs > 1)
        rv = parse_trial (s, line->args[1], &number);
    if (rv == 0)
        rv = check_trial_result (s, number);
    if (rv == 0 && experiment_has_ranks (s->exp) && !opt->dry_run && !getenv ("SLURM_JOB_ID"))
        rv = reproduce_in_allocation (s, number, opt->trust);
    else if (rv == 0)
        rv = run_again (s, number, opt->dry_run);
    sweep_close (s);
    return rv;
}
