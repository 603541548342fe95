/* SPDX-License-Identifier: Apache-2.0 */
/* What stands out in a report, in sentences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/report/summary.h"

/* Trials that a sentence needs; the share of a range that is its end; cuts of a
 * number's values, and choices of a category, that are compared.
 */
enum { NEED = 20, NEED_RANGE = 40, CUTS = 10, CHOICES = 50 };
static const double at_end = 0.07;

static int by_number (const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* ---- importance ---- */

/* The parameter with the largest share below 'most', -1: none. */
static long next_share (const struct report_data *d, double most, long but)
{
    long found = -1;

    for (size_t k = 0; k < d->params.n; k++) {
        double share = explained_share (&d->explanation, k);
        if ((long)k != but && share <= most
            && (found < 0
                || share > explained_share (&d->explanation, (size_t)found)))
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
    fprintf (f,
             "</b> matters most: alone it explains %.0f %% of the variance",
             100 * share);
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

/* ---- the ends of ranges ---- */

static double place (const struct report_param *p, double v)
{
    bool log_scale = p->log && p->low > 0;
    double low = log_scale ? log (p->low) : p->low;
    double high = log_scale ? log (p->high) : p->high;

    return ((log_scale ? log (v) : v) - low) / (high - low);
}

static void
say_range (FILE *f, const struct report_data *d, const struct report_param *p)
{
    long top = d->nordered / 40 > 5 ? d->nordered / 40 : 5, n = 0;
    double *at = malloc ((size_t)top * sizeof (*at));

    for (long i = 0; at && i < top && i < d->nordered; i++)
        if (!isnan (p->v[d->order[i]]))
            at[n++] = place (p, p->v[d->order[i]]);
    if (n >= 5) {
        qsort (at, (size_t)n, sizeof (*at), by_number);
        double middle = at[n / 2];
        if (middle < at_end || middle > 1 - at_end) {
            fprintf (f,
                     "<li>The best %ld trials lie at the <b>%s end</b> of ",
                     n,
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
        if (!d->params.list[k].category
            && d->params.list[k].low < d->params.list[k].high)
            say_range (f, d, &d->params.list[k]);
}

/* ---- when ---- */

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
    if (s->ntrials < NEED)
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

/* ---- failures ---- */

struct finding {
    double chi; /* how unlikely by chance; 0: none */
    const struct report_param *p;
    bool above;
    double at; /* the choice, or the bound */
    double rate, other;
};

static bool inside (const struct finding *c, double v)
{
    if (isnan (v))
        return false;
    return c->p->category ? v == c->at : c->above ? v >= c->at : v < c->at;
}

static void compare (struct finding *found,
                     struct finding c,
                     const bool *failed,
                     long n,
                     long all)
{
    long in = 0, hit = 0, out;

    for (long i = 0; i < n; i++)
        if (inside (&c, c.p->v[i])) {
            in++;
            hit += failed[i];
        }
    out = n - in;
    if (in < 5 || in < n / 50 || out < n / 10 || out < 1)
        return;
    c.rate = (double)hit / (double)in;
    c.other = (double)(all - hit) / (double)out;
    c.chi = (c.rate - c.other) * (c.rate - c.other) * (double)in * (double)out;
    if (c.rate > 2 * c.other && hit * 3 > all && c.chi > found->chi)
        *found = c;
}

static void compare_number (struct finding *found,
                            const struct report_param *p,
                            const bool *failed,
                            long n,
                            long all)
{
    double *v = malloc (((size_t)n + 1) * sizeof (*v));
    long known = 0;

    for (long i = 0; v && i < n; i++)
        if (!isnan (p->v[i]))
            v[known++] = p->v[i];
    if (v)
        qsort (v, (size_t)known, sizeof (*v), by_number);
    for (int k = 1; k < CUTS && known > 0; k++)
        for (int above = 0; above < 2; above++)
            compare (found,
                     (struct finding){
                         .p = p, .above = above, .at = v[known * k / CUTS] },
                     failed,
                     n,
                     all);
    free (v);
}

static void put_finding (FILE *f, const struct finding *c)
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
    fprintf (
        f,
        "</b>: %.0f %% of these trials failed, %.0f %% of the others.</li>",
        100 * c->rate,
        100 * c->other);
}

static void say_failures (FILE *f, const struct report_data *d)
{
    const struct report *r = &d->report;
    bool *failed = calloc ((size_t)r->n + 1, sizeof (*failed));
    struct finding found = { 0 };
    long all = 0;

    for (long i = 0; failed && i < r->n; i++)
        all += failed[i] = report_state_of (r, i) == STATE_FAILED;
    for (size_t k = 0; all >= 5 && all < r->n && k < d->params.n; k++) {
        const struct report_param *p = &d->params.list[k];
        for (size_t c = 0; p->category && c < p->table.n && c < CHOICES; c++)
            compare (&found,
                     (struct finding){ .p = p, .at = (double)c },
                     failed,
                     r->n,
                     all);
        if (!p->category)
            compare_number (&found, p, failed, r->n, all);
    }
    if (found.chi > 0)
        put_finding (f, &found);
    free (failed);
}

/* ---- GPUs ---- */

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
        fprintf (
            f,
            "<li>GPUs were idle for <b>%.0f %%</b> of the monitored time.</li>",
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
        fprintf (
            f,
            "<section class=\"card notes\" aria-labelledby=\"h-notes\"><h2 "
            "id=\"h-notes\">What stands out</h2><ul>%s</ul></section>",
            text);
    free (text);
}
