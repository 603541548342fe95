/* SPDX-License-Identifier: Apache-2.0 */
/* dl show: one experiment, one trial. */
#include <stdio.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/overview.h"
#include "launcher/cmd/provenance.h"
#include "launcher/cmd/select.h"
#include "launcher/cmd/show_output.h"
#include "launcher/cmd/show_trial.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/say.h"

static void print_selected (const struct sweep *s, const struct selection *sel)
{
    if (!sel->chosen)
        print_overview (s);
    if (!sel->chosen && s->exp->job.is_given)
        print_conditions (job_conditions (s));
    if (sel->chosen)
        show_columns (s, sel);
    else
        print_trials (s, sel->trials, sel->n);
    if (sel->n < s->ntrials && !sel->chosen)
        printf ("(%ld of %ld trials; 'dl show' prints all)\n", sel->n, s->ntrials);
}

static int show_experiment (const struct sweep *s, const struct command_line *line)
{
    const struct show_options *opt = line->options;
    struct selection sel;
    int rv = selection_make (&sel, s, line);

    if (rv == EXIT_OK && opt->json)
        show_json (s, &sel);
    else if (rv == EXIT_OK && opt->csv)
        show_csv (s, &sel);
    else if (rv == EXIT_OK)
        print_selected (s, &sel);
    selection_free (&sel);
    return rv;
}

int cmd_show (const struct command_line *line)
{
    const struct show_options *opt = line->options;
    struct sweep *s;
    long n;
    int rv;

    if (opt->json && opt->csv) {
        complain ("show: --json and --csv do not go together");
        return EXIT_USAGE;
    }
    if ((rv = open_experiment (line, line->args[0], &s)))
        return rv;
    if (opt->provenance)
        rv = provenance_print (s, opt->json);
    else if (line->nargs < 2)
        rv = show_experiment (s, line);
    else if ((rv = parse_trial (s, line->args[1], &n)) == 0)
        rv = show_trial (s, n, line);
    sweep_close (s);
    return rv;
}
