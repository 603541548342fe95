/* SPDX-License-Identifier: Apache-2.0 */
/* dl plot: draw charts of an experiment with gnuplot. */

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/progress/progress.h"
#include "launcher/report/report.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/table.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/command_line.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/publish_file.h"
#include "launcher/sys/subprocess.h"
#include "launcher/sys/terminal.h"
#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"

/* ---- gnuplot ---- */

enum plot_medium {
    PLOT_DUMB,
    PLOT_BLOCK,
    PLOT_SIXEL,
    PLOT_KITTY,
    PLOT_SVG,
    PLOT_PNG,
    PLOT_PDF,
    PLOT_MEDIA
};

enum { TIMEOUT = 120 /* s */, ANSWER = 8192 };

/* The terminal or file format to draw for. */
static const char *const plot_media[PLOT_MEDIA] = {
    "dumb", "block", "sixel", "kitty", "svg", "png", "pdf",
};

/* gnuplot's names for them, the preferred one first. */
static const char *const gnuplot_names[PLOT_MEDIA][3] = {
    [PLOT_DUMB] = { "dumb" },     [PLOT_BLOCK] = { "block" },
    [PLOT_SIXEL] = { "sixelgd" }, [PLOT_KITTY] = { "kittycairo", "kittygd" },
    [PLOT_SVG] = { "svg" },       [PLOT_PNG] = { "pngcairo", "png" },
    [PLOT_PDF] = { "pdfcairo" },
};

/* Whether the output is text instead of pixels. */
static bool plot_is_text (enum plot_medium m)
{
    return m == PLOT_DUMB || m == PLOT_BLOCK;
}

/* List the terminals that gnuplot supports, as " dumb svg ... ".  Returns its exit
 * status, 127 if gnuplot is not installed.
 */
static int gnuplot_terminals (char *buf, size_t size)
{
    struct command c = { .timeout = TIMEOUT };
    int rv;

    command_add (&c, "gnuplot", NULL);
    command_add (&c, "-d", NULL); /* do not read the user's ~/.gnuplot */
    command_add (&c, "-e", NULL);
    command_add (&c, "print ' ' . GPVAL_TERMINALS . ' '", NULL);
    rv = command_run (&c, NULL, buf, size);
    command_free (&c);
    return rv;
}

static const char *terminal_name (const char *terminals, enum plot_medium m)
{
    char word[32];

    for (int i = 0; gnuplot_names[m][i]; i++) {
        snprintf (word, sizeof (word), " %s ", gnuplot_names[m][i]);
        if (strstr (terminals, word))
            return gnuplot_names[m][i];
    }
    return NULL;
}

static bool gnuplot_has (const char *terminals, enum plot_medium m)
{
    return terminal_name (terminals, m);
}

/* Print the commands that select the terminal and its size. */
static void gnuplot_begin (FILE *f, const char *terminals, enum plot_medium m, int columns,
                           int lines, bool colours)
{
    const char *name = terminal_name (terminals, m);

    fputs ("set encoding utf8\n", f);
    switch (m) {
    case PLOT_DUMB:
        fprintf (f, "set terminal dumb nofeed noenhanced size %d,%d %s\n", columns, lines,
                 colours ? "ansi" : "mono");
        break;
    case PLOT_BLOCK:
        fprintf (f, "set terminal block braille noenhanced size %d,%d %s\n", columns, lines,
                 colours ? "ansi" : "mono");
        break;
    case PLOT_SIXEL:
    case PLOT_KITTY:
        fprintf (f, "set terminal %s noenhanced size %d,%d\n", name, columns * 9, lines * 16);
        break;
    case PLOT_SVG:
        fprintf (f, "set terminal svg noenhanced size 960,600 background 'white' font 'sans,14'\n");
        break;
    case PLOT_PNG:
        fprintf (f, "set terminal %s noenhanced size 1280,800%s\n", name,
                 strcmp (name, "png") ? " font 'sans,13'" : "");
        break;
    case PLOT_PDF:
        fprintf (f, "set terminal pdfcairo noenhanced size 20cm,12.5cm\n");
        break;
    case PLOT_MEDIA:
        break;
    }
}

/* Within single quotes only the quote is special, but gnuplot 5.4 does not always
 * accept a doubled quote, so replace it with a similar character.  Also replace
 * characters that might start a substitution.  A tic's label is a format, in which % is
 * special.
 */
static void put_gnuplot_text (FILE *f, const char *text, bool tic)
{
    mbstate_t state = { 0 };
    wchar_t c;

    fputc ('\'', f);
    while (*text) {
        size_t n = mbrtowc (&c, text, MB_CUR_MAX, &state);
        if (n == (size_t)-1 || n == (size_t)-2 || n == 0) {
            state = (mbstate_t){ 0 };
            fputc ('?', f);
            n = 1;
        } else if (n > 1)
            fwrite (text, 1, wcwidth (c) < 0 ? 0 : n, f);
        else if (*text == '\'' || *text == '`')
            fputs (MB_CUR_MAX > 1 ? "\xe2\x80\x99" : "\"", f);
        else if (*text == '%' && tic)
            fputs ("%%", f);
        else if (*text == '\\')
            fputc ('/', f);
        else
            fputc ((unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text, f);
        text += n;
    }
    fputc ('\'', f);
}

/* Print text from others as a gnuplot string in which nothing is a command,
 * substitution, format or markup.  gnuplot_tic() prints the label of a tic.
 */
static void gnuplot_text (FILE *f, const char *text)
{
    put_gnuplot_text (f, text, false);
}

static void gnuplot_tic (FILE *f, const char *text)
{
    put_gnuplot_text (f, text, true);
}

/* Unset variables that make gnuplot read other files. */
static void clear_gnuplot_environment (const void *arg)
{
    static const char *const variables[] = { "GNUTERM", "GNUPLOT_LIB", "GNUPLOT_DRIVER_DIR",
                                             "GNUPLOT_PS_DIR" };

    (void)arg;
    for (size_t i = 0; i < sizeof (variables) / sizeof (*variables); i++)
        unsetenv (variables[i]);
    alarm (TIMEOUT);
}

static char *read_gnuplot_output (FILE *f, size_t *n)
{
    long size = fseek (f, 0, SEEK_END) == 0 ? ftell (f) : -1;
    char *text = xmalloc (size > 0 ? (size_t)size + 1 : 1);

    rewind (f);
    *n = fread (text, 1, size > 0 ? (size_t)size : 0, f);
    text[*n] = '\0';
    return text;
}

static int run_gnuplot (FILE *io[3])
{
    static char *const argv[] = { "gnuplot", "-d", "-", NULL };
    const struct spawn s = {
        .argv = argv,
        .io = { fileno (io[0]), fileno (io[1]), fileno (io[2]) },
        .prepare = clear_gnuplot_environment,
    };

    return subprocess_wait (subprocess_spawn (&s));
}

/* Report the last line that gnuplot printed. */
static int report_gnuplot_error (FILE *errors, int status, struct slurmdl_error *err)
{
    size_t n = 0;
    char *text = read_gnuplot_output (errors, &n), *line = text;

    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    if (strrchr (text, '\n'))
        line = strrchr (text, '\n') + 1;
    errno = EIO;
    errorf (err, "gnuplot failed (exit status %d): %.80s", status, line);
    free (text);
    return -1;
}

/* Run a script and return its output in '*out', which the caller frees.  Returns -1
 * with 'err' on failure.
 */
static int gnuplot_run (const char *script, size_t size, char **out, size_t *nout,
                        struct slurmdl_error *err)
{
    FILE *io[3] = { tmpfile (), tmpfile (), tmpfile () };
    int rv = -1;
    int status;

    *out = NULL;
    if (!io[0] || !io[1] || !io[2] || fwrite (script, 1, size, io[0]) != size || fflush (io[0]) != 0
        || fseek (io[0], 0, SEEK_SET) != 0)
        errorf (err, "cannot write a temporary file: %s", strerror (errno));
    else if ((status = run_gnuplot (io)) != 0)
        report_gnuplot_error (io[2], status, err);
    else {
        *out = read_gnuplot_output (io[1], nout);
        rv = 0;
    }
    for (int i = 0; i < 3; i++)
        if (io[i])
            fclose (io[i]);
    return rv;
}

/* ---- charts ---- */

struct plot {
    const struct command_line *line;
    const struct plot_options *opt;
    FILE *f;
    enum plot_medium medium;
    struct report report;
    struct report_params params;
    struct curves curves;
    long *order; /* trials with a finite value, best first */
    long n;
    const struct report_param *param; /* of dl plot scatter */
};

/* draw() writes commands to plot.f.  It returns -1 after printing an error. */
struct plot_kind {
    const char *name;
    int (*draw) (struct plot *p);
    bool curves, param; /* data that the chart needs */
};

enum {
    CURVES = 6,        /* curves with a name */
    CURVES_MAX = 60,   /* curves in a file; those without a name are grey */
    POINTS = 200,      /* points of a curve */
    PARALLEL = 400,    /* lines in a file */
    LINES_OF_TEXT = 8, /* lines as text */
};

/* ---- common to all charts ---- */

/* Choose the range of values to show: from the best value to slightly beyond the worst
 * of the first nine tenths.  Otherwise one trial that diverged would compress the
 * others into a line.  'order' is from report_order().  Returns false if there are no
 * values.
 */
static bool focus_values (const struct report *r, const long *order, long n, double *low,
                          double *high)
{
    double best, most, pad;

    if (n < 1)
        return false;
    best = report_value (r, order[0], 0);
    most = report_value (r, order[(n - 1) * 9 / 10], 0);
    most += (most - best) * 0.4;
    if (most == best)
        most += fabs (best) * 0.1 + 1e-12;
    *low = fmin (best, most);
    *high = fmax (best, most);
    pad = (*high - *low) * 0.04;
    *low -= pad;
    *high += pad;
    return isfinite (*high - *low);
}

static const char *plotted_metric (const struct plot *p)
{
    return sweep_metric (p->report.sweeps[0].s, 0);
}

static bool larger_is_better (const struct plot *p)
{
    return !p->report.sweeps[0].s->exp->search->config.smaller_is_better;
}

/* gnuplot's terminal "block" cannot rotate the label of the y axis and would lose the
 * space to its left, so print the label above the axis.
 */
static void put_label (const struct plot *p, const char *axis, const char *text)
{
    bool above = p->medium == PLOT_BLOCK && *axis == 'y';

    fprintf (p->f, "set %slabel ", above ? "" : axis);
    gnuplot_text (p->f, text);
    fputs (above ? " at screen 0.02, graph 1.06 left\n" : "\n", p->f);
}

/* Set the range of an axis.  Use a logarithmic axis if the values span a factor of 50.
 */
static void put_range (const struct plot *p, const char *axis)
{
    double low, high, best, worst;

    if (!focus_values (&p->report, p->order, p->n, &low, &high))
        return;
    best = report_value (&p->report, p->order[0], 0);
    worst = report_value (&p->report, p->order[(p->n - 1) * 9 / 10], 0);
    if (fmin (best, worst) > 0 && fmax (best, worst) / fmin (best, worst) > 50) {
        fprintf (p->f, "set logscale %s\n", axis);
        low = fmin (best, worst) / 1.2;
    }
    fprintf (p->f, "set %srange [%.9g:%.9g]\n", axis, low, high);
}

static void put_plot_title (const struct plot *p, const char *what)
{
    char text[512];

    snprintf (text, sizeof (text), "%s: %s", p->report.sweeps[0].name, what);
    fputs ("set title ", p->f);
    gnuplot_text (p->f, text);
    fputc ('\n', p->f);
}

/* Print the settings that all charts share. */
static void plot_style (const struct plot *p)
{
    fputs ("set border 3\nset tics nomirror\nset format '%g'\nset key outside right top\n", p->f);
    if (!plot_is_text (p->medium))
        fputs ("set grid lc rgb '#dddddd'\n", p->f);
    else
        fputs ("set key inside right top\n", p->f);
}

/* ---- history ---- */

static void put_plot_values (const struct plot *p)
{
    fputs ("$values << END_OF_VALUES\n", p->f);
    for (long i = 0; i < p->report.n; i++)
        if (isfinite (report_value (&p->report, i, 0)))
            fprintf (p->f, "%ld %.9g\n", p->report.trials[i].number,
                     report_value (&p->report, i, 0));
    fputs ("END_OF_VALUES\n", p->f);
}

static void put_best_so_far (const struct plot *p)
{
    double best = NAN;

    fputs ("$best << END_OF_BEST\n", p->f);
    for (long i = 0; i < p->report.n; i++) {
        double v = report_value (&p->report, i, 0);
        if (!report_result (&p->report, i, 0).compared)
            continue;
        if (report_better (&p->report, v, best))
            best = v;
        fprintf (p->f, "%ld %.9g\n", p->report.trials[i].number, best);
    }
    fputs ("END_OF_BEST\n", p->f);
}

static int draw_history_plot (struct plot *p)
{
    put_plot_title (p, "history");
    put_label (p, "x", "trial");
    put_label (p, "y", plotted_metric (p));
    put_range (p, "y");
    if (larger_is_better (p))
        fputs ("set key right bottom\n", p->f);
    put_plot_values (p);
    put_best_so_far (p);
    fprintf (p->f,
             "plot $values using 1:2 with points pt %s lc rgb '%s' title "
             "'trials', $best using 1:2 with steps lw 2 lc rgb '%s' title 'best so far'\n",
             plot_is_text (p->medium) ? "'.'" : "7 ps 0.5",
             plot_is_text (p->medium) ? "cyan" : "#8aa4c8",
             plot_is_text (p->medium) ? "green" : "#1f6f4a");
    return 0;
}

/* ---- curves ---- */

static size_t put_curve (const struct plot *p, long trial, const char *name)
{
    struct curve_point *list = xcalloc (POINTS, sizeof (*list));
    size_t n = curve_thin (&p->curves.trials[trial], 0, POINTS, list);

    fprintf (p->f, "$%s << END_OF_CURVE\n", name);
    for (size_t i = 0; i < n; i++)
        if (isfinite (list[i].value))
            fprintf (p->f, "%lld %.9g\n", (long long)list[i].step, list[i].value);
    fputs ("END_OF_CURVE\n", p->f);
    free (list);
    return n;
}

static long curves_named (const struct plot *p)
{
    long most = p->opt->trials > 0 ? (long)p->opt->trials : CURVES;

    return most < p->n ? most : p->n;
}

static int draw_curves (struct plot *p)
{
    long named = curves_named (p), all = named;
    const char *gap = "plot ";
    char name[32];
    size_t points = 0;

    if (!plot_is_text (p->medium))
        all = p->n < CURVES_MAX ? p->n : named > CURVES_MAX ? named : CURVES_MAX;
    put_plot_title (p, "learning curves");
    put_label (p, "x", "step");
    put_label (p, "y", plotted_metric (p));
    put_range (p, "y");
    if (larger_is_better (p))
        fputs ("set key right bottom\n", p->f);
    for (long i = 0; i < all; i++) {
        snprintf (name, sizeof (name), "c%ld", i);
        points += put_curve (p, p->order[i], name);
    }
    if (!points) {
        complain ("%s: no trial has logged %s", p->report.sweeps[0].name, plotted_metric (p));
        return -1;
    }
    fputs ("set key invert\n", p->f); /* the best curve is drawn last */
    for (long i = all - 1; i >= 0; i--) {
        fprintf (p->f, "%s$c%ld using 1:2 with lines ", gap, i);
        if (i < named)
            fprintf (p->f, "lw 2 lt %ld title 'trial %ld'", i + 1,
                     p->report.trials[p->order[i]].number);
        else
            fputs ("lw 1 lc rgb '#cccccc' notitle", p->f);
        gap = ", ";
    }
    fputc ('\n', p->f);
    return 0;
}

/* ---- scatter ---- */

/* Label the axis with the names of the categories. */
static void put_categories (const struct plot *p, const struct report_param *of)
{
    fputs ("set xtics (", p->f);
    for (size_t i = 0; i < of->table.n; i++) {
        fputs (i ? ", " : "", p->f);
        gnuplot_tic (p->f, of->table.list[i]);
        fprintf (p->f, " %zu", i);
    }
    fprintf (p->f, ")\nset xrange [-0.5:%zu.5]\n", of->table.n ? of->table.n - 1 : 0);
}

static int draw_scatter (struct plot *p)
{
    const struct report_param *of = p->param;
    char what[256];

    snprintf (what, sizeof (what), "%s by %s", plotted_metric (p), of->name);
    put_plot_title (p, what);
    put_label (p, "x", of->name);
    put_label (p, "y", plotted_metric (p));
    put_range (p, "y");
    if (of->category)
        put_categories (p, of);
    else if (of->log)
        fputs ("set logscale x\n", p->f);
    fputs ("$values << END_OF_VALUES\n", p->f);
    for (long i = 0; i < p->n; i++)
        if (isfinite (of->v[p->order[i]]))
            fprintf (p->f, "%.9g %.9g\n", of->v[p->order[i]],
                     report_value (&p->report, p->order[i], 0));
    fputs ("END_OF_VALUES\n$best << END_OF_BEST\n", p->f);
    if (isfinite (of->v[p->order[0]]))
        fprintf (p->f, "%.9g %.9g\n", of->v[p->order[0]],
                 report_value (&p->report, p->order[0], 0));
    fputs ("END_OF_BEST\n", p->f);
    fprintf (p->f, "plot $values using 1:2 with points pt %s title 'trials'%s\n",
             plot_is_text (p->medium) ? "'o'" : "7 ps 0.6 lc rgb '#4f76b3'",
             !isfinite (of->v[p->order[0]]) ? ""
             : plot_is_text (p->medium)
                 ? ", $best using 1:2 with points pt '#' title 'best'"
                 : ", $best using 1:2 with points pt 9 ps 2 lc rgb '#1f6f4a' title 'best'");
    return 0;
}

/* ---- parallel coordinates ---- */

/* Return the place of a value on its axis, from 0 to 1. */
static double axis_place (const struct report_param *of, double v)
{
    double low = of->low, high = of->high;

    if (isnan (v))
        return NAN;
    if (of->category)
        return of->table.n > 1 ? v / (double)(of->table.n - 1) : 0.5;
    if (of->log && low > 0) {
        low = log (low);
        high = log (high);
        v = log (v);
    }
    return high > low ? (v - low) / (high - low) : 0.5;
}

static void put_axis_end (const struct plot *p, size_t axis, const char *text, bool top)
{
    fputs ("set label ", p->f);
    gnuplot_text (p->f, text);
    fprintf (p->f, " at %zu,%s center\n", axis, top ? "1.1" : "-0.06");
}

/* Label the ends of each axis with its bounds, or with the first and last category. */
static void put_axes (const struct plot *p)
{
    const struct report_params *of = &p->params;
    char text[64];

    fputs ("set xtics (", p->f);
    for (size_t k = 0; k < of->n; k++) {
        gnuplot_tic (p->f, of->list[k].name);
        fprintf (p->f, " %zu, ", k);
    }
    gnuplot_tic (p->f, plotted_metric (p));
    fprintf (p->f, " %zu) scale 0\nset xrange [-0.3:%zu.3]\n", of->n, of->n);
    for (size_t k = 0; k < of->n; k++) {
        const struct report_param *a = &of->list[k];
        bool named = a->category && a->table.n > 0;
        snprintf (text, sizeof (text), "%.4g", a->low);
        put_axis_end (p, k, named ? a->table.list[0] : text, false);
        snprintf (text, sizeof (text), "%.4g", a->high);
        put_axis_end (p, k, named ? a->table.list[a->table.n - 1] : text, true);
    }
    for (size_t k = 0; k <= of->n; k++)
        fprintf (p->f, "set arrow from %zu,0 to %zu,1 nohead lc rgb '#999999'\n", k, k);
}

static void put_lines (const struct plot *p, long n)
{
    double low, high, span;

    if (!focus_values (&p->report, p->order, p->n, &low, &high))
        return;
    span = high - low;
    fputs ("$lines << END_OF_LINES\n", p->f);
    for (long i = n - 1; i >= 0; i--) { /* draw the best one last */
        double v = report_value (&p->report, p->order[i], 0);
        double at = fmin (fmax ((v - low) / span, 0), 1);
        double good = larger_is_better (p) ? at : 1 - at;
        for (size_t k = 0; k < p->params.n; k++) {
            double y = axis_place (&p->params.list[k], p->params.list[k].v[p->order[i]]);
            if (isfinite (y))
                fprintf (p->f, "%zu %.5g %.5g\n", k, y, good);
        }
        fprintf (p->f, "%zu %.5g %.5g\n\n", p->params.n, at, good);
    }
    fputs ("END_OF_LINES\n", p->f);
}

static void put_metric_ends (const struct plot *p)
{
    double low, high;
    char text[64];

    if (!focus_values (&p->report, p->order, p->n, &low, &high))
        return;
    snprintf (text, sizeof (text), "%.4g", low);
    put_axis_end (p, p->params.n, text, false);
    snprintf (text, sizeof (text), "%.4g", high);
    put_axis_end (p, p->params.n, text, true);
}

static int draw_parallel (struct plot *p)
{
    long most = plot_is_text (p->medium) ? LINES_OF_TEXT : PARALLEL;
    long n = p->n < most ? p->n : most;
    char what[64];

    if (p->params.n == 0) {
        complain ("%s searches no hyperparameter", p->report.sweeps[0].name);
        return -1;
    }
    snprintf (what, sizeof (what), "the %ld best trials", n);
    put_plot_title (p, n < p->n ? what : "all trials");
    put_axes (p);
    put_metric_ends (p);
    put_lines (p, n);
    fputs ("unset key\nset border 0\nunset ytics\nunset grid\nset yrange "
           "[-0.12:1.2]\nunset colorbox\n",
           p->f);
    if (plot_is_text (p->medium))
        fputs ("plot $lines using 1:2 with lines lt 1\n", p->f);
    else
        fputs ("set palette defined (0 '#d9dfe8', 0.5 '#8aa4c8', 1 '#1f6f4a')\n"
               "plot $lines using 1:2:3 with lines lw 1.2 lc palette\n",
               p->f);
    return 0;
}

/* ---- the kinds ---- */

static const struct plot_kind plot_kinds[] = {
    { "curves", draw_curves, true, false },
    { "history", draw_history_plot, false, false },
    { "scatter", draw_scatter, false, true },
    { "parallel", draw_parallel, false, false },
    { NULL, NULL, false, false },
};

/* ---- the command ---- */

void plot_words (void)
{
    for (const struct plot_kind *k = plot_kinds; k->name; k++)
        puts (k->name);
}

static const struct plot_kind *find_kind (const char *name)
{
    for (const struct plot_kind *k = plot_kinds; k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

/* ---- the output ---- */

static bool begins_with_any (const char *text, const char *const *starts)
{
    for (; text && *starts; starts++)
        if (!strncmp (text, *starts, strlen (*starts)))
            return true;
    return false;
}

/* Look only at the environment: a terminal's answer to a query would mix with the
 * user's input. tmux does not pass pictures on.
 */
static enum plot_medium seems_to_be (const char *terminals)
{
    static const char *const kitty[] = { "xterm-kitty", "xterm-ghostty", NULL };
    static const char *const sixel[] = { "foot", "mlterm", "yaft", "contour", NULL };
    const char *term = getenv ("TERM"), *program = getenv ("TERM_PROGRAM");
    bool utf8 = MB_CUR_MAX > 1;

    if (!getenv ("TMUX") && isatty (1)) {
        if ((begins_with_any (term, kitty) || getenv ("KITTY_WINDOW_ID"))
            && gnuplot_has (terminals, PLOT_KITTY))
            return PLOT_KITTY;
        if ((begins_with_any (term, sixel)
             || (program && (!strcmp (program, "WezTerm") || !strcmp (program, "iTerm.app"))))
            && gnuplot_has (terminals, PLOT_SIXEL))
            return PLOT_SIXEL;
    }
    return utf8 && gnuplot_has (terminals, PLOT_BLOCK) ? PLOT_BLOCK : PLOT_DUMB;
}

static int medium_of (const char *name, const char *of, enum plot_medium *m)
{
    bool file = !strcmp (of, "output");

    for (int i = 0; i < PLOT_MEDIA; i++)
        if ((i >= PLOT_SVG) == file && !strcmp (plot_media[i], name)) {
            *m = (enum plot_medium)i;
            return EXIT_OK;
        }
    if (file)
        complain ("--output: '%s' is not a picture format: FILE.svg, FILE.png or FILE.pdf", name);
    else
        complain ("--term: there is no terminal '%s': dumb, block, sixel or kitty", name);
    return EXIT_USAGE;
}

static int find_medium (struct plot *p, const char *terminals)
{
    const char *file = p->opt->output, *dot = file ? strrchr (file, '.') : NULL;
    int rv = EXIT_OK;

    if (file)
        rv = medium_of (dot ? dot + 1 : "", "output", &p->medium);
    else if (p->opt->terminal)
        rv = medium_of (p->opt->terminal, "term", &p->medium);
    else
        p->medium = seems_to_be (terminals);
    if (rv == EXIT_OK && !gnuplot_has (terminals, p->medium)) {
        complain ("this gnuplot cannot draw %s: version 5 has dumb, "
                  "sixel, svg, png and pdf; block and kitty need gnuplot 6",
                  plot_media[p->medium]);
        rv = EXIT_FAILED;
    }
    return rv;
}

static int find_gnuplot (char *terminals, size_t size)
{
    int rv = gnuplot_terminals (terminals, size);

    if (rv == 0)
        return EXIT_OK;
    if (rv == 127)
        complain ("dl plot needs gnuplot: install gnuplot-nox (Debian) or gnuplot-minimal "
                  "(Fedora); 'dl report' does not need it");
    else
        complain ("cannot run gnuplot: %s", terminals);
    return EXIT_FAILED;
}

/* ---- data ---- */

static int gather_plot (struct plot *p, struct sweep *s, const struct plot_kind *k,
                        struct slurmdl_error *err)
{
    if (report_fill (&p->report, &s, 1, err) < 0)
        return -1;
    params_fill (&p->params, &p->report);
    if (k->curves)
        curves_read (&p->curves, &p->report, NULL);
    p->n = report_order (&p->report, &p->order);
    return 0;
}

static int find_plot_param (struct plot *p, const char *name)
{
    const char **words = xcalloc (p->params.n + 1, sizeof (*words));
    const char *meant;

    for (size_t i = 0; i < p->params.n; i++) {
        if (!strcmp (p->params.list[i].name, name))
            p->param = &p->params.list[i];
        words[i] = p->params.list[i].name;
    }
    if (!p->param) {
        meant = nearest_word (name, words);
        complain ("'%s' is not a searched hyperparameter%s%s%s", name,
                  DID_YOU_MEAN (meant, "'", "'", ""));
    }
    free (words);
    return p->param ? EXIT_OK : EXIT_USAGE;
}

static void window (int *columns, int *lines)
{
    struct winsize ws = { 0 };

    *columns = table_width ();
    *lines = ioctl (1, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 10 ? ws.ws_row - 2 : 24;
    *columns = *columns <= 0 ? 80 : *columns < 30 ? 30 : *columns;
    *columns = *columns > 300 ? 300 : *columns;
    *lines = *lines > 60 ? 60 : *lines;
}

static int put_script (struct plot *p, const struct plot_kind *k, const char *terminals)
{
    int columns, lines;

    window (&columns, &lines);
    gnuplot_begin (p->f, terminals, p->medium, columns, lines,
                   screen_is_there () && !(getenv ("NO_COLOR") && *getenv ("NO_COLOR")));
    plot_style (p);
    return k->draw (p);
}

/* ---- the command ---- */

/* Some fonts draw circles for a braille pattern without dots. */
static void blank_braille (char *text)
{
    char *to = text;

    for (const char *c = text; *c; to++) {
        bool empty = !strncmp (c, "\xe2\xa0\x80", 3);
        *to = empty ? ' ' : *c;
        c += empty ? 3 : 1;
    }
    *to = '\0';
}

/* Print a picture without the blank lines and trailing blanks around it. */
static void print_picture_lines (char *text)
{
    bool begun = false;

    for (char *line; (line = strsep (&text, "\n"));) {
        size_t n;
        line += strspn (line, "\f"); /* form feed */
        n = strlen (line);
        while (n > 0 && strchr (" \f", line[n - 1]))
            n--;
        begun = begun || n > 0;
        if (begun && (n > 0 || text))
            printf ("%.*s\n", (int)n, line);
    }
}

/* Print pictures for sixel and kitty terminals unchanged.  They consist of pixels, so
 * they cannot contain escape sequences of other users.
 */
static int deliver_picture (const struct plot *p, char *text, size_t n, struct slurmdl_error *err)
{
    if (p->opt->output) {
        if (publish_replace (p->opt->output, text, n, err) < 0)
            return -1;
        puts (p->opt->output);
    } else if (plot_is_text (p->medium)) {
        terminal_allow_colours (true);
        blank_braille (text);
        print_picture_lines (text);
        terminal_allow_colours (false);
    } else {
        /* gnuplot 6 moves to the top left of the window first, which would overwrite
         * what is there
         */
        size_t home = strncmp (text, "\033[H", 3) ? 0 : 3;
        terminal_control ("%.*s\n", (int)(n - home), text + home);
    }
    return 0;
}

static int draw_plot (struct plot *p, const struct plot_kind *k, const char *terminals)
{
    struct slurmdl_error err = { "" };
    char *script, *out = NULL;
    size_t size, n;
    int rv = EXIT_OK;

    p->f = xopen_memstream (&script, &size);
    if (put_script (p, k, terminals) < 0)
        rv = EXIT_NOT_FOUND;
    xclose_memstream (p->f);
    if (rv == EXIT_OK
        && (gnuplot_run (script, size, &out, &n, &err) < 0
            || deliver_picture (p, out, n, &err) < 0))
        rv = fail (&err);
    if (rv == EXIT_OK && *p->curves.damage.text) {
        complain ("%s (the rest is drawn)", p->curves.damage.text);
        rv = EXIT_DAMAGED;
    }
    free (script);
    free (out);
    return rv;
}

static int plot_sweep (struct plot *p, struct sweep *s, const struct plot_kind *k)
{
    struct slurmdl_error err = { "" };
    char terminals[8192];
    int rv = find_gnuplot (terminals, sizeof (terminals));

    if (rv == EXIT_OK)
        rv = find_medium (p, terminals);
    if (rv == EXIT_OK && gather_plot (p, s, k, &err) < 0)
        rv = fail (&err);
    if (rv == EXIT_OK && p->n == 0) {
        complain ("%s: no trial has a finite value of %s yet", p->report.sweeps[0].name,
                  sweep_metric (p->report.sweeps[0].s, 0));
        rv = EXIT_NOT_FOUND;
    }
    if (rv == EXIT_OK && k->param)
        rv = find_plot_param (p, p->line->args[2]);
    return rv == EXIT_OK ? draw_plot (p, k, terminals) : rv;
}

/* Arguments: "EXPERIMENT scatter lr".  Without a kind, draw the history. */
static int check_arguments (const struct command_line *line, const struct plot_kind **k)
{
    const char *name = line->nargs > 1 ? line->args[1] : "history";

    if (!(*k = find_kind (name))) {
        complain ("plot: there is no '%s': curves, history, scatter PARAMETER or parallel", name);
        return EXIT_USAGE;
    }
    if ((*k)->param != (line->nargs > 2)) {
        complain ((*k)->param ? "plot: scatter needs the name of a parameter"
                              : "plot: only scatter takes a parameter");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int cmd_plot (const struct command_line *line)
{
    struct plot p = { .line = line, .opt = line->options };
    const struct plot_kind *k;
    struct sweep *s;
    int rv = check_arguments (line, &k);

    if (rv || (rv = open_experiment (line, line->args[0], &s)))
        return rv;
    rv = plot_sweep (&p, s, k);
    free (p.order);
    curves_free (&p.curves);
    params_free (&p.params);
    report_free (&p.report);
    sweep_close (s);
    return rv;
}
