/* SPDX-License-Identifier: Apache-2.0 */
/* What stands out in a report, in sentences. */
#include <math.h>
#include <stdlib.h>

#include "launcher/report/failures.h"
#include "launcher/report/summary.h"
#include "runtime/base/array.h"

/* Trials that a sentence needs; the share of a range that is its end. */
enum { NEED = 20, NEED_RANGE = 40 };
static const double at_end = 0.07;

/* The parameter with the largest share below 'most', -1: none. */
static long next_share (const struct report_data *d, double most, long but)
{
    long found = -1;

    for (size_t k = 0; k < d->params.n; k++) {
        double share = explained_share (&d->explanation, k);
        if ((long)k != but && share <= most
            && (found < 0 || share > explained_share (&d->explanation, (size_t)found)))
            found = (long)k;
    }
    return found;
}

static void say_importance (FILE *f, const struct report_data *d)
{
    const struct explanation *x = &d->explanation;
    long first = next_share (d, INFINITY, -1), second;
    double share;

    if (first < 0 || !((share = explained_share (x, (size_t)first)) > 0.1))
        return;
    fputs ("<li><b>", f);
    html_put (f, d->params.list[first].name);
    fprintf (f, "</b> matters most: alone it explains %.0f %% of the variance", 100 * share);
    if (x->length)
        fprintf (f, " at length %lld", (long long)x->length);
    if ((second = next_share (d, share, first)) >= 0
        && explained_share (x, (size_t)second) > 0.02) {
        fputs ("; next is ", f);
        html_put (f, d->params.list[second].name);
        fprintf (f, " (%.0f %%)", 100 * explained_share (x, (size_t)second));
    }
    fputs (".</li>", f);
}

static double place (const struct report_param *p, double v)
{
    bool log_scale = p->log && p->low > 0;
    double low = log_scale ? log (p->low) : p->low;
    double high = log_scale ? log (p->high) : p->high;

    return ((log_scale ? log (v) : v) - low) / (high - low);
}

static void say_range (FILE *f, const struct report_data *d, const struct report_param *p)
{
    long top = d->nordered / 40 > 5 ? d->nordered / 40 : 5, n = 0;
    double *at = malloc ((size_t)top * sizeof (*at));

    for (long i = 0; at && i < top && i < d->nordered; i++)
        if (!isnan (p->v[d->order[i]]))
            at[n++] = place (p, p->v[d->order[i]]);
    if (n >= 5) {
        qsort (at, (size_t)n, sizeof (*at), compare_doubles);
        double middle = at[n / 2];
        if (middle < at_end || middle > 1 - at_end) {
            fprintf (f, "<li>The best %ld trials lie at the <b>%s end</b> of ", n,
                     middle > 0.5 ? "upper" : "lower");
            html_put (f, p->name);
            fputs (": a wider range may pay.</li>", f);
        }
    }
    free (at);
}

static void say_ranges (FILE *f, const struct report_data *d)
{
    for (size_t k = 0; d->nordered >= NEED_RANGE && k < d->params.n; k++)
        if (!d->params.list[k].category && d->params.list[k].low < d->params.list[k].high)
            say_range (f, d, &d->params.list[k]);
}

static void say_when (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    const struct report_trial *best;
    const struct sweep *s;
    long later;

    if (r->best < 0)
        return;
    best = &r->trials[r->best];
    s = r->sweeps[best->sweep].s;
    if (s->ntrials < NEED || s->exp->search.repeats > 1)
        return;
    later = s->ntrials - best->number;
    if (!later) {
        fputs ("<li>The best trial was the last to begin: more trials may "
               "pay.</li>",
               f);
        return;
    }
    fputs ("<li>The best trial was begun as number ", f);
    html_count (f, best->number);
    fputs ("; the ", f);
    html_count (f, later);
    fputs (" begun after it did not beat it.</li>", f);
}

static void put_finding (FILE *f, const struct failure_finding *c)
{
    fputs ("<li>Failures concentrate at <b>", f);
    html_put (f, c->p->name);
    if (c->p->category) {
        fputs (" = ", f);
        html_put (f, c->p->table.list[(size_t)c->at]);
    } else {
        fputs (c->above ? " ≥ " : " &lt; ", f);
        html_number (f, c->at, 3);
    }
    fprintf (f, "</b>: %.0f %% of these trials failed, %.0f %% of the others.</li>", 100 * c->rate,
             100 * c->other);
}

static void say_failures (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    bool *failed = calloc ((size_t)r->n + 1, sizeof (*failed));
    struct failure_finding found;

    for (long i = 0; failed && i < r->n; i++)
        failed[i] = report_phase (r, i) == PHASE_FAILED;
    if (failed && (found = failure_explain (r, &d->params, failed)).chi > 0)
        put_finding (f, &found);
    free (failed);
}

static void say_gpus (FILE *f, const struct report_data *d)
{
    double idle = 0, all = 0;

    for (size_t i = 0; i < d->gpus.n; i++) {
        const struct gpu_attempt *g = &d->gpus.list[i];
        const struct report_attempt *a = &d->report.attempts[g->attempt];
        double seconds = (a->end - a->begin) * g->gpus;
        if (isnan (g->busy))
            continue;
        all += seconds;
        idle += seconds * (1 - g->busy / 100);
    }
    if (all > 0 && idle > 0.4 * all)
        fprintf (f, "<li>GPUs were idle for <b>%.0f %%</b> of the monitored time.</li>",
                 100 * idle / all);
}

void notes_put (FILE *f, const struct report_data *d)
{
    char *text = NULL;
    size_t size = 0;
    FILE *list = open_memstream (&text, &size);

    if (!list)
        return;
    say_importance (list, d);
    say_ranges (list, d);
    say_when (list, d);
    say_failures (list, d);
    say_gpus (list, d);
    if (fclose (list) == 0 && size > 0)
        fprintf (f,
                 "<section class=\"card notes\" aria-labelledby=\"h-notes\"><h2 "
                 "id=\"h-notes\">What stands out</h2><ul>%s</ul></section>",
                 text);
    free (text);
}
