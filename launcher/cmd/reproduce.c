/* SPDX-License-Identifier: Apache-2.0 */
/* dl reproduce: train a trial again, and compare its metric. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "launcher/cmd/code.h"
#include "launcher/cmd/commands.h"
#include "launcher/cmd/provenance.h"
#include "launcher/cmd/try_run.h"
#include "launcher/code/copy.h"
#include "launcher/code/store.h"
#include "launcher/config/queries.h"
#include "launcher/results/latest_metric.h"
#include "launcher/results/metric_summary.h"
#include "launcher/session/open.h"
#include "launcher/software/record.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "launcher/trainer/trainer.h"
#include "launcher/worker/failure.h"
#include "runtime/base/error.h"

/* ---- whether it can be ---- */

static int check_trial (const struct sweep *s, long number)
{
    const struct sweep_trial *t = sweep_trial (s, number);

    if (!t || t->length == 0)
        complain ("%s: %s%.0ld has no result to compare with",
                  s->dir,
                  t ? "trial " : "the experiment",
                  t ? number : 0);
    else if (t->from || s->exp->source_length)
        complain ("%s: trial %ld began with the checkpoint of another one: "
                  "nothing here trains that again",
                  s->dir,
                  number);
    else if (experiment_has_ranks (s->exp))
        complain ("%s: a trial has %lld ranks: 'dl fork %s %ld' trains it "
                  "again on Slurm",
                  s->dir,
                  (long long)(s->exp->nodes * s->exp->ranks),
                  strrchr (s->dir, '/') + 1,
                  number);
    else
        return EXIT_OK;
    return EXIT_USAGE;
}

/* ---- the code ---- */

/* A copy that is as new: trials may have changed that of the experiment. */
static int
take_code (struct sweep *s, const char *place, struct slurmdl_error *err)
{
    char base[PATH_MAX];
    char dir[PATH_MAX];
    const struct code_copy copy = { base, s->root, s->exp->dir };
    struct code_archive a;
    int rv;

    if (!s->code) {
        printf ("code: it was not frozen: what is in %s now\n", s->exp->dir);
        return 0;
    }
    snprintf (base, sizeof (base), "%.3000s/code", place);
    if (code_copy_path (&copy, dir, sizeof (dir)) < 0)
        return errorf (err, "%s: no such folder was frozen", s->exp->dir);
    if (store_get (s->dir, s->code, &a, err) < 0)
        return -1;
    rv = code_copy_make (&copy, &a, err);
    code_archive_free (&a);
    printf ("code: %.12s, as it was frozen\n", s->code);
    free (s->exp->dir);
    s->exp->dir = strdup (dir);
    return rv;
}

/* Of a large file the digest would take longer than the training. */
static void compare_image (const struct sweep *s)
{
    json_t *record =
        s->provenance && s->exp->software.image ? provenance_read (s) : NULL;

    if (software_image_differs (record))
        complain ("%s: the image %s is not the file that it was when the "
                  "experiment was made (dl show --provenance)",
                  s->dir,
                  s->exp->software.image);
    json_decref (record);
}

static void print_command (const struct try_run *t)
{
    char **argv = attempt_words (&t->attempt);
    size_t first = t->sweep.exp->entrypoint ? 2 : 0;

    printf ("command:");
    for (char **a = argv + first; argv && *a; a++)
        printf (" %s", *a);
    printf ("\n");
    software_print (&t->sweep.exp->software);
    fflush (stdout);
    for (char **a = argv; a && *a; a++)
        free (*a);
    free (argv);
}

/* ---- the metric ---- */

static double
value_of (const struct sweep *s, const struct sweep_trial *t, size_t i)
{
    return sweep_metrics (s) > 1 && t->values ? t->values[i] : t->metric;
}

static bool is_same (double a, double b)
{
    return a == b || (isnan (a) && isnan (b));
}

static int compare (const struct try_run *t, const struct sweep *s)
{
    const struct sweep_trial *old = sweep_trial (s, t->attempt.trial);
    struct failure_class v = { .why = "" };
    double values[OBJECTIVES_MAX];
    bool same = true;
    int64_t step;

    if (!WIFEXITED (t->status) || WEXITSTATUS (t->status) != 0
        || attempt_metrics (&t->attempt, &step, values) < 0) {
        failure_classify (&t->attempt, t->status, false, &v);
        printf ("not reproduced: no result: %s\n", v.why);
        return EXIT_FAILED;
    }
    metric_summarise (&t->attempt, values);
    for (size_t i = 0; i < sweep_metrics (s); i++) {
        double then = value_of (s, old, i);
        bool equal = is_same (values[i], then);
        printf ("%s: %s is %.9g at length %lld, and was %.9g\n",
                equal ? "reproduced" : "not reproduced",
                sweep_metric (s, i),
                values[i],
                (long long)old->length,
                then);
        same &= equal;
    }
    return same ? EXIT_OK : EXIT_FAILED;
}

/* ---- the command ---- */

static int run_again (struct sweep *s, long number, bool dry_run)
{
    struct slurmdl_error err = { "" };
    const struct sweep_trial *old = sweep_trial (s, number);
    struct try_run t;
    int rv = try_run_open (&t, s->exp, number, &err);

    if (rv == 0 && !dry_run)
        rv = take_code (s, t.sweep.dir, &err);
    if (rv == 0) {
        t.trial->x = old->x;
        t.trial->target = t.attempt.length = old->length;
        printf ("trial %ld of %s, length %lld\n",
                number,
                s->dir,
                (long long)old->length);
        print_command (&t);
        compare_image (s);
        rv = dry_run ? 0 : try_run_train (&t, &err);
    }
    if (rv < 0)
        rv = fail (&err);
    else if (!dry_run)
        rv = compare (&t, s);
    try_run_close (&t);
    return rv;
}

int cmd_reproduce (const struct settings *st)
{
    struct sweep *s;
    long number;
    int rv = open_to_run (st, st->args[0], &s);

    if (rv)
        return rv;
    number = s->best;
    if (st->nargs > 1)
        rv = parse_trial (s, st->args[1], &number);
    if (rv == 0)
        rv = check_trial (s, number);
    if (rv == 0)
        rv = run_again (s, number, st->dry_run);
    sweep_close (s);
    return rv;
}
