/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a report's page that need no script. */
#include "launcher/report/summary.h"

#include <math.h>
#include <stdlib.h>

#include "launcher/report/cost.h"
#include "launcher/report/failures.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"

enum { ROWS = 50, CAUSES = 4, SEEDS = 5 };

void trial_name (const struct report *r, long trial, char *buf, size_t size)
{
    const struct report_trial *t = &r->trials[trial];

    if (r->nsweeps > 1)
        snprintf (buf, size, "%s/%ld", r->sweeps[t->sweep].name, t->number);
    else
        snprintf (buf, size, "%ld", t->number);
}

/* ---- the best trial ---- */

static void put_flags (FILE *f, const struct report_data *d, long trial)
{
    char text[512];

    fputs ("<div class=\"copy\"><code>", f);
    for (size_t k = 0; k < d->params.n; k++) {
        if (!param_text (&d->params.list[k], trial, text, sizeof (text)))
            continue;
        fputs ("--", f);
        html_put_word (f, d->params.list[k].name);
        fputc (' ', f);
        html_put_word (f, text);
        fputc (' ', f);
    }
    fputs (HTML_COPY, f);
}

/* What goes on from the trial: it trains it for twice as long, or, where nobody
 * has said how long that is, the same with other seeds.
 */
static void put_commands (FILE *f, const struct report *r, long trial)
{
    const struct report_trial *t = &r->trials[trial];
    const struct experiment *e = r->sweeps[t->sweep].s->exp;

    for (int seeds = 0; seeds <= 1; seeds++) {
        if (!seeds && e->search.max_length <= 1)
            continue;
        fputs ("<div class=\"copy\"><code>dl fork --", f);
        if (seeds)
            fprintf (f, "seeds %d ", SEEDS);
        else
            fprintf (f, "set searcher.max_length=%lld ", 2 * (long long)e->search.max_length);
        html_put_word (f, r->sweeps[t->sweep].name);
        fprintf (f, " %ld%s", t->number, HTML_COPY);
    }
}

/* "trial 4", "mean of 3 ± 0.01, point 2, trials 4 to 6" */
static void put_whose (FILE *f, const struct report *r)
{
    const struct report_trial *best = &r->trials[r->best];
    const struct sweep *s = r->sweeps[best->sweep].s;
    struct sweep_result of = report_result (r, r->best, 0);
    long repeats = s->exp->search.repeats, point;
    char name[300];

    if (repeats <= 1) {
        trial_name (r, r->best, name, sizeof (name));
        fputs ("trial ", f);
        html_put (f, name);
        return;
    }
    point = trial_point (s, best->number);
    html_format (f, "mean of %ld", of.n);
    if (of.n < repeats)
        html_format (f, " of %ld", repeats);
    if (of.n > 1) {
        fputs (", deviation ", f);
        html_number (f, of.deviation, 2);
    }
    fputs (" · ", f);
    if (r->nsweeps > 1) {
        html_put (f, r->sweeps[best->sweep].name);
        fputs (" ", f);
    }
    html_format (f, "point %ld, trials %ld to %ld", point, (point - 1) * repeats + 1,
                 point * repeats);
}

/* Of what the best one was compared with. */
static void put_median (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    long repeats = r->nsweeps == 1 ? r->sweeps[0].s->exp->search.repeats : 1;
    long n = 0;

    while (n < d->nordered && report_result (r, d->order[n], 0).compared)
        n++;
    fputs (" · median of ", f);
    html_count (f, repeats > 1 ? n / repeats : n);
    fputs (repeats > 1 ? " point" : " trial", f);
    fputs ((repeats > 1 ? n / repeats : n) == 1 ? " " : "s ", f);
    html_number (f, report_value (r, d->order[n / 2], 0), 4);
}

static const char *seed_unused (const struct report *r)
{
    for (size_t k = 0; k < r->nsweeps; k++)
        if (sweep_seed_unused (r->sweeps[k].s))
            return sweep_seed_unused (r->sweeps[k].s);
    return NULL;
}

static void put_best (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    const struct sweep *s = r->sweeps[0].s;

    fputs ("<section class=\"card answer\" aria-labelledby=\"h-best\"><h2 "
           "id=\"h-best\">Best ",
           f);
    html_put (f, sweep_metric (s, 0));
    fprintf (f, " <span class=\"dim\">(%s is better)</span></h2><p class=\"value\">",
             s->exp->search.smaller_is_better ? "smaller" : "larger");
    if (r->best < 0) {
        fputs ("–</p><p>No trial has a finite value yet.</p></section>", f);
        return;
    }
    html_number (f, report_value (r, r->best, 0), 5);
    fputs ("</p><p class=\"dim\">", f);
    put_whose (f, r);
    if (s->exp->search.max_length > 1)
        html_format (f, " at length %lld", (long long)report_result (r, r->best, 0).length);
    for (size_t m = 1; m < sweep_metrics (s); m++) {
        html_format (f, " · %s ", sweep_metric (s, m));
        html_number (f, report_value (r, r->best, m), 4);
    }
    put_median (f, d);
    fputs ("</p>", f);
    if (seed_unused (r)) {
        fputs ("<p>", f);
        html_put (f, seed_unused (r));
        fputs (".</p>", f);
    }
    put_flags (f, d, r->best);
    put_commands (f, r, r->best);
    fputs ("</section>", f);
}

/* ---- cost ---- */

static void fact (FILE *f, const char *name)
{
    fprintf (f, "<div><dt>%s</dt><dd>", name);
}

static void fact_end (FILE *f)
{
    fputs ("</dd></div>", f);
}

static void count_fact (FILE *f, const char *name, size_t n)
{
    fact (f, name);
    html_count (f, (int64_t)n);
    fact_end (f);
}

static void seconds_fact (FILE *f, const char *name, double seconds)
{
    fact (f, name);
    html_seconds (f, seconds);
    fact_end (f);
}

static void put_cost (FILE *f, const struct report *r)
{
    struct report_cost c = report_cost_of (r, r->nsweeps);

    fputs ("<section class=\"card\" aria-labelledby=\"h-cost\"><h2 "
           "id=\"h-cost\">Cost</h2><dl class=\"facts\">",
           f);
    seconds_fact (f, "Wall clock", c.wall);
    seconds_fact (f, "Worker time", c.busy);
    if (c.gpus > 0) {
        fact (f, "GPU time");
        html_number (f, c.gpus / 3600, 3);
        fputs (" GPU h", f);
        fact_end (f);
    }
    count_fact (f, "Trials", (size_t)r->n);
    count_fact (f, "Attempts", c.attempts);
    count_fact (f, "Workers", r->slots.n);
    fact (f, "Busy");
    if (c.alive > 0)
        fprintf (f, "%.0f %%", 100 * c.busy / c.alive);
    else
        fputs ("–", f);
    fact_end (f);
    fact (f, "Spent without a result");
    html_seconds (f, c.wasted);
    if (c.busy > 0)
        fprintf (f, " (%.1f %%)", 100 * c.wasted / c.busy);
    fact_end (f);
    fputs ("</dl></section>", f);
}

/* ---- ends ---- */

static void put_states (FILE *f, const struct report *r)
{
    long n[TRIAL_PHASES] = { 0 };

    for (long i = 0; i < r->n; i++)
        n[report_phase (r, i)]++;
    fputs ("<div class=\"ends\"><div class=\"strip\" aria-hidden=\"true\">", f);
    for (int k = 0; k < TRIAL_PHASES; k++)
        if (n[k])
            fprintf (f, "<i class=\"s%d\" style=\"flex:%ld 0 0\"></i>", k, n[k]);
    fputs ("</div>", f);
    for (int k = 0; k < TRIAL_PHASES; k++) {
        if (!n[k])
            continue;
        fprintf (f,
                 "<button type=\"button\" class=\"row\" data-state=\"%d\"><i "
                 "class=\"s%d\"></i><span>%s</span><b>",
                 k, k, trial_phases[k]);
        html_count (f, n[k]);
        fprintf (f, "</b><span class=\"dim\">%.1f %%</span></button>",
                 100.0 * (double)n[k] / (double)r->n);
    }
    fputs ("</div>", f);
}

static void put_causes (FILE *f, const struct report *r)
{
    struct failure_cause *list;
    long n = failure_causes (r, &list);

    if (n <= 0) {
        free (list);
        return;
    }
    fputs ("<h3>Attempts that failed, by cause</h3><ol class=\"causes\">", f);
    for (long i = 0; i < n && i < CAUSES; i++) {
        const char *cause = r->causes.list[list[i].cause];
        fputs ("<li><span title=\"", f);
        html_put (f, cause);
        fputs ("\">", f);
        html_put (f, cause);
        fputs ("</span><b>", f);
        html_count (f, list[i].attempts);
        fputs ("</b></li>", f);
    }
    fputs ("</ol>", f);
    free (list);
}

void summary_put (FILE *f, const struct report_data *d)
{
    put_best (f, d);
    put_cost (f, &d->report);
    fputs ("<section class=\"card\" aria-labelledby=\"h-ends\"><h2 "
           "id=\"h-ends\">How trials ended</h2>",
           f);
    put_states (f, &d->report);
    put_causes (f, &d->report);
    fputs ("</section>", f);
    notes_put (f, d);
}

/* ---- several experiments ---- */

static void put_compared (FILE *f, const struct report_data *d, size_t k)
{
    const struct report *r = &d->report;
    const struct report_sweep *of = &r->sweeps[k];
    long number = sweep_best (of->s), failed = 0;
    long best = number ? of->first + number - 1 : -1;
    double seconds = 0;

    for (long i = of->first; i < of->first + of->s->ntrials; i++) {
        seconds += r->trials[i].of->seconds;
        failed += report_phase (r, i) == PHASE_FAILED;
    }
    fputs ("<tr><td class=\"t\"><b>", f);
    html_put (f, of->name);
    fputs ("</b></td><td class=\"t\">", f);
    html_put (f, of->s->exp->searcher_name);
    fprintf (f, "</td><td class=\"t\">%s</td><td>", sweep_state_name (of->s->state));
    html_number (f, best < 0 ? NAN : report_value (r, best, 0), 5);
    fputs ("</td><td>", f);
    if (best >= 0)
        fprintf (f, "%ld", r->trials[best].number);
    fputs ("</td><td>", f);
    html_count (f, of->s->ntrials);
    fputs ("</td><td>", f);
    html_count (f, failed);
    fputs ("</td><td>", f);
    html_seconds (f, seconds);
    fputs ("</td></tr>", f);
}

void comparison_put (FILE *f, const struct report_data *d)
{
    if (d->report.nsweeps < 2)
        return;
    fputs ("<section class=\"card\" "
           "id=\"compare\"><header><h2>Experiments</h2></header><div "
           "class=\"plain\"><table>"
           "<thead><tr><th class=\"t\" scope=\"col\">experiment</th><th "
           "class=\"t\" scope=\"col\">searcher</th>"
           "<th class=\"t\" scope=\"col\">state</th><th "
           "scope=\"col\">best</th><th scope=\"col\">trial</th>"
           "<th scope=\"col\">trials</th><th scope=\"col\">failed</th><th "
           "scope=\"col\">time of results</th></tr></thead><tbody>",
           f);
    for (size_t k = 0; k < d->report.nsweeps; k++)
        put_compared (f, d, k);
    fputs ("</tbody></table></div></section>", f);
}

/* ---- the table: a row for each point ---- */

static void put_head (FILE *f, const struct report_data *d)
{
    const struct sweep *s = d->report.sweeps[0].s;

    fputs ("<thead><tr><th scope=\"col\">trial</th><th class=\"t\" "
           "scope=\"col\">state</th>",
           f);
    for (size_t m = 0; m < sweep_metrics (s); m++) {
        fputs ("<th scope=\"col\">", f);
        html_put (f, sweep_metric (s, m));
        fputs ("</th>", f);
    }
    if (d->report.repeats)
        fputs ("<th scope=\"col\">deviation</th><th scope=\"col\">n</th>", f);
    fputs ("<th scope=\"col\">length</th><th scope=\"col\">time</th><th "
           "scope=\"col\">attempts</th>",
           f);
    for (size_t k = 0; k < d->params.n; k++) {
        fprintf (f, "<th scope=\"col\"%s>", d->params.list[k].category ? " class=\"t\"" : "");
        html_put (f, d->params.list[k].name);
        fputs ("</th>", f);
    }
    fputs ("</tr></thead>", f);
}

static void put_row (FILE *f, const struct report_data *d, long i)
{
    const struct report *r = &d->report;
    const struct sweep_trial *t = r->trials[i].of;
    char text[512];
    long last;

    trial_name (r, i, text, sizeof (text));
    fputs ("<tr><td>", f);
    html_put (f, text);
    last = r->trials[i].number + r->sweeps[r->trials[i].sweep].s->exp->search.repeats - 1;
    if (last > r->trials[i].number)
        fprintf (f, "–%ld", last);
    fprintf (f, "</td><td class=\"t\">%s</td>", trial_phases[report_phase (r, i)]);
    for (size_t m = 0; m < sweep_metrics (r->sweeps[0].s); m++) {
        fputs ("<td>", f);
        html_number (f, report_value (r, i, m), 5);
        fputs ("</td>", f);
    }
    if (r->repeats) {
        fputs ("<td>", f);
        html_number (f, report_result (r, i, 0).deviation, 2);
        fprintf (f, "</td><td>%ld</td>", report_result (r, i, 0).n);
    }
    fprintf (f, "<td>%lld</td><td>", (long long)t->length);
    html_seconds (f, t->seconds);
    fprintf (f, "</td><td>%ld</td>", t->over);
    for (size_t k = 0; k < d->params.n; k++) {
        bool known = param_text (&d->params.list[k], i, text, sizeof (text));
        fputs (d->params.list[k].category ? "<td class=\"t\">" : "<td>", f);
        html_put (f, known ? text : "–");
        fputs ("</td>", f);
    }
    fputs ("</tr>\n", f);
}

void table_put (FILE *f, const struct report_data *d)
{
    long n = 0;

    put_head (f, d);
    fputs ("<tbody>", f);
    for (long k = 0; n < ROWS && k < d->nordered; k++)
        if (d->report.trials[d->order[k]].point == d->order[k]) {
            put_row (f, d, d->order[k]);
            n++;
        }
    for (long i = 0; i < d->report.n && n < ROWS; i++)
        if (!isfinite (report_value (&d->report, i, 0)) && d->report.trials[i].point == i) {
            put_row (f, d, i);
            n++;
        }
    fputs ("</tbody>", f);
}
