/* SPDX-License-Identifier: Apache-2.0 */
/* The main charts as SVG, for readers without scripts. */
#include "launcher/report/chart.h"

#include <math.h>
#include <stdlib.h>

/* Pixels; curves and points of one, at most; trials of the history, at most. */
enum { WIDTH = 640, HEIGHT = 300, LEFT = 60, TOP = 16, BOTTOM = 30 };
enum { CURVES = 60, POINTS = 30, DOTS = 4000 };

struct chart_plot {
    double x0, x1, y0, y1;
};

static double at_x (const struct chart_plot *p, double v)
{
    return LEFT + (WIDTH - LEFT - 10) * (v - p->x0) / (p->x1 - p->x0);
}

static double at_y (const struct chart_plot *p, double v)
{
    double part = (v - p->y0) / (p->y1 - p->y0);

    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part;
}

static bool focus (struct chart_plot *p, const struct report_data *d)
{
    return report_focus (&d->report, d->order, d->nordered, &p->y0, &p->y1);
}

static void put_begin (FILE *f,
                       const struct chart_plot *p,
                       const char *label,
                       const char *below)
{
    fprintf (f,
             "<svg class=\"still\" viewBox=\"0 0 %d %d\" role=\"img\" "
             "aria-label=\"%s\">",
             WIDTH,
             HEIGHT,
             label);
    for (int i = 0; i <= 4; i++) {
        double v = p->y0 + (p->y1 - p->y0) * i / 4;
        fprintf (
            f,
            "<g class=\"tick\" transform=\"translate(0,%.1f)\"><line x1=\"%d\" "
            "x2=\"%d\"/><text x=\"%d\" dy=\"0.32em\" text-anchor=\"end\">",
            at_y (p, v),
            LEFT,
            WIDTH - 10,
            LEFT - 6);
        html_number (f, v, 3);
        fputs ("</text></g>", f);
    }
    for (int i = 0; i <= 4; i++) {
        double v = round (p->x0 + (p->x1 - p->x0) * i / 4);
        fprintf (f,
                 "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                 at_x (p, v),
                 HEIGHT - 14);
        html_number (f, v, 4);
        fputs ("</text>", f);
    }
    fprintf (
        f,
        "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>",
        WIDTH - 10,
        HEIGHT - 1,
        below);
}

static void
put_dots (FILE *f, const struct chart_plot *p, const struct report *r)
{
    long step = r->n / DOTS + 1;

    fputs ("<path class=\"dots\" d=\"", f);
    for (long i = 0; i < r->n; i += step) {
        double v = report_value (r, i, 0);
        if (isfinite (v))
            fprintf (f, "M%.0f %.0fh0", at_x (p, (double)i + 1), at_y (p, v));
    }
    fputs ("\"/>", f);
}

static void
put_best (FILE *f, const struct chart_plot *p, const struct report *r)
{
    double best = NAN;

    fputs ("<path class=\"line\" d=\"", f);
    for (long i = 0; i < r->n; i++) {
        double v = report_value (r, i, 0);
        if (!report_result (r, i, 0).compared
            || (!isnan (best) && !report_better (r, v, best)))
            continue;
        if (isnan (best))
            fprintf (f, "M%.1f %.1f", at_x (p, (double)i + 1), at_y (p, v));
        else
            fprintf (f, "H%.1fV%.1f", at_x (p, (double)i + 1), at_y (p, v));
        best = v;
    }
    fprintf (f, "H%.1f\"/>", at_x (p, (double)r->n));
}

void chart_history_put (FILE *f, const struct report_data *d)
{
    struct chart_plot p = { .x0 = 0, .x1 = (double)d->report.n + 0.5 };

    if (!focus (&p, d)) {
        fputs ("<p class=\"empty\">No trial has a finite value yet.</p>", f);
        return;
    }
    put_begin (
        f, &p, "Values of trials in their order, and the best so far", "trial");
    put_dots (f, &p, &d->report);
    put_best (f, &p, &d->report);
    fputs ("</svg>", f);
}

static void put_curve (FILE *f,
                       const struct chart_plot *p,
                       const struct curve_point *list,
                       size_t n,
                       bool best)
{
    bool pen = false;

    fprintf (f, "<path class=\"%s\" d=\"", best ? "line" : "curve");
    for (size_t i = 0; i < n; i++) {
        if (isfinite (list[i].value))
            fprintf (f,
                     "%c%.0f %.0f",
                     pen ? 'L' : 'M',
                     at_x (p, (double)list[i].step),
                     at_y (p, list[i].value));
        pen = isfinite (list[i].value);
    }
    fputs (n == 1 && pen ? "h2\"/>" : "\"/>", f);
}

void chart_curves_put (FILE *f, const struct report_data *d)
{
    struct curve_point *points =
        calloc ((size_t)CURVES * POINTS, sizeof (*points));
    size_t n[CURVES] = { 0 };
    struct chart_plot p = { .x0 = INFINITY, .x1 = -INFINITY };
    long shown = d->nordered < CURVES ? d->nordered : CURVES;

    for (long k = 0; points && k < shown; k++) {
        struct curve_point *list = points + k * POINTS;
        n[k] = curve_thin (&d->curves.trials[d->order[k]], 0, POINTS, list);
        for (size_t i = 0; i < n[k]; i++) {
            p.x0 = fmin (p.x0, (double)list[i].step);
            p.x1 = fmax (p.x1, (double)list[i].step);
        }
    }
    if (!points || !focus (&p, d) || p.x0 > p.x1) {
        fputs ("<p class=\"empty\">No trial has logged the metric.</p>", f);
    } else {
        p.x1 += p.x0 == p.x1;
        put_begin (f, &p, "Learning curves of the best trials", "step");
        for (long k = shown - 1; k >= 0; k--)
            put_curve (f, &p, points + k * POINTS, n[k], k == 0);
        fputs ("</svg>", f);
    }
    free (points);
}
