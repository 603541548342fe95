/* SPDX-License-Identifier: Apache-2.0 */
/* dl plot: charts of an experiment by gnuplot, in the terminal or as a file. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "launcher/format/table.h"
#include "launcher/progress/screen.h"
#include "launcher/report/curves.h"
#include "launcher/report/fill.h"
#include "launcher/report/params.h"
#include "launcher/session/open.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/publish.h"
#include "launcher/sys/say.h"
#include "launcher/sys/terminal.h"
#include "launcher/view/gnuplot.h"
#include "launcher/view/plot_charts.h"
#include "launcher/view/view.h"
#include "runtime/base/error.h"
#include "runtime/base/word.h"

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

/* ---- where to ---- */

static bool begins (const char *text, const char *const *starts)
{
    for (; text && *starts; starts++)
        if (!strncmp (text, *starts, strlen (*starts)))
            return true;
    return false;
}

/* By the environment alone: to ask the terminal would mix its answer with what
 * the user types.  tmux passes no pictures on.
 */
static enum plot_medium seems_to_be (const char *terminals)
{
    static const char *const kitty[] = { "xterm-kitty", "xterm-ghostty", NULL };
    static const char *const sixel[] = {
        "foot", "mlterm", "yaft", "contour", NULL
    };
    const char *term = getenv ("TERM"), *program = getenv ("TERM_PROGRAM");
    bool utf8 = MB_CUR_MAX > 1;

    if (!getenv ("TMUX") && isatty (1)) {
        if ((begins (term, kitty) || getenv ("KITTY_WINDOW_ID"))
            && gnuplot_has (terminals, PLOT_KITTY))
            return PLOT_KITTY;
        if ((begins (term, sixel)
             || (program
                 && (!strcmp (program, "WezTerm")
                     || !strcmp (program, "iTerm.app"))))
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
        complain ("--output: '%s' is no kind of picture: FILE.svg, FILE.png or "
                  "FILE.pdf",
                  name);
    else
        complain ("--term: there is no terminal '%s': dumb, block, sixel or "
                  "kitty",
                  name);
    return EXIT_USAGE;
}

static int find_medium (struct plot *p, const char *terminals)
{
    const char *file = p->st->output, *dot = file ? strrchr (file, '.') : NULL;
    int rv = EXIT_OK;

    if (file)
        rv = medium_of (dot ? dot + 1 : "", "output", &p->medium);
    else if (p->st->format)
        rv = medium_of (p->st->format, "term", &p->medium);
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
        complain ("dl plot needs gnuplot: install gnuplot-nox (Debian) or "
                  "gnuplot-minimal (Fedora); 'dl report' needs none");
    else
        complain ("gnuplot does not run: %s", terminals);
    return EXIT_FAILED;
}

/* ---- data ---- */

static int gather (struct plot *p,
                   struct sweep *s,
                   const struct plot_kind *k,
                   struct slurmdl_error *err)
{
    if (report_fill (&p->report, &s, 1, err) < 0)
        return -1;
    if (params_fill (&p->params, &p->report) < 0
        || (k->curves && curves_read (&p->curves, &p->report, NULL) < 0)
        || (p->n = report_order (&p->report, &p->order)) < 0)
        return errorf (err, "out of memory");
    return 0;
}

static int find_param (struct plot *p, const char *name)
{
    const char **words = calloc (p->params.n + 1, sizeof (*words));
    const char *meant;

    for (size_t i = 0; i < p->params.n; i++) {
        if (!strcmp (p->params.list[i].name, name))
            p->param = &p->params.list[i];
        if (words)
            words[i] = p->params.list[i].name;
    }
    if (!p->param) {
        meant = words ? nearest_word (name, words) : NULL;
        complain ("'%s' is no hyperparameter that is searched%s%s%s",
                  name,
                  DID_YOU_MEAN (meant, "'", "'", ""));
    }
    free (words);
    return p->param ? EXIT_OK : EXIT_USAGE;
}

static void window (int *columns, int *lines)
{
    struct winsize ws = { 0 };

    *columns = table_width ();
    *lines =
        ioctl (1, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 10 ? ws.ws_row - 2 : 24;
    *columns = *columns <= 0 ? 80 : *columns < 30 ? 30 : *columns;
    *columns = *columns > 300 ? 300 : *columns;
    *lines = *lines > 60 ? 60 : *lines;
}

static int
put_script (struct plot *p, const struct plot_kind *k, const char *terminals)
{
    int columns, lines;

    window (&columns, &lines);
    gnuplot_begin (p->f,
                   terminals,
                   p->medium,
                   columns,
                   lines,
                   screen_is_there ()
                       && !(getenv ("NO_COLOR") && *getenv ("NO_COLOR")));
    plot_style (p);
    return k->draw (p);
}

/* ---- the command ---- */

/* Some fonts draw circles for braille without a dot. */
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

/* Without the empty lines and the blanks that it puts around a picture. */
static void print_lines (char *text)
{
    bool begun = false;

    for (char *line; (line = strsep (&text, "\n"));) {
        size_t n;
        line += strspn (line, "\f"); /* a new page */
        n = strlen (line);
        while (n > 0 && strchr (" \f", line[n - 1]))
            n--;
        begun = begun || n > 0;
        if (begun && (n > 0 || text))
            printf ("%.*s\n", (int)n, line);
    }
}

/* Pictures in the terminal's own language go out as they are: no text of others
 * is in them, only pixels.
 */
static int
deliver (const struct plot *p, char *text, size_t n, struct slurmdl_error *err)
{
    if (p->st->output) {
        if (publish_replace (p->st->output, text, n, err) < 0)
            return -1;
        puts (p->st->output);
    } else if (plot_is_text (p->medium)) {
        terminal_allow_colours (true);
        blank_braille (text);
        print_lines (text);
        terminal_allow_colours (false);
    } else {
        /* gnuplot 6 begins at the top of the window, over what is there */
        size_t home = strncmp (text, "\033[H", 3) ? 0 : 3;
        terminal_control ("%.*s\n", (int)(n - home), text + home);
    }
    return 0;
}

static int
draw (struct plot *p, const struct plot_kind *k, const char *terminals)
{
    struct slurmdl_error err = { "" };
    char *script = NULL, *out = NULL;
    size_t size, n;
    int rv = EXIT_OK;

    if (!(p->f = open_memstream (&script, &size))) {
        complain ("out of memory");
        return EXIT_IO;
    }
    if (put_script (p, k, terminals) < 0)
        rv = EXIT_NOT_FOUND;
    if (fclose (p->f) != 0 && rv == EXIT_OK) {
        complain ("out of memory");
        rv = EXIT_IO;
    }
    if (rv == EXIT_OK
        && (gnuplot_run (script, size, &out, &n, &err) < 0
            || deliver (p, out, n, &err) < 0))
        rv = fail (&err);
    free (script);
    free (out);
    return rv;
}

static int plot (struct plot *p, struct sweep *s, const struct plot_kind *k)
{
    struct slurmdl_error err = { "" };
    char terminals[8192];
    int rv = find_gnuplot (terminals, sizeof (terminals));

    if (rv == EXIT_OK)
        rv = find_medium (p, terminals);
    if (rv == EXIT_OK && gather (p, s, k, &err) < 0)
        rv = fail (&err);
    if (rv == EXIT_OK && p->n == 0) {
        complain ("%s: no trial has a finite value of %s yet",
                  p->report.sweeps[0].name,
                  sweep_metric (p->report.sweeps[0].s, 0));
        rv = EXIT_NOT_FOUND;
    }
    if (rv == EXIT_OK && k->param)
        rv = find_param (p, p->st->args[2]);
    return rv == EXIT_OK ? draw (p, k, terminals) : rv;
}

/* "EXPERIMENT scatter lr"; history where nothing is said. */
static int check_arguments (const struct settings *st,
                            const struct plot_kind **k)
{
    const char *name = st->nargs > 1 ? st->args[1] : "history";

    if (!(*k = find_kind (name))) {
        complain ("plot: there is no '%s': curves, history, scatter PARAMETER "
                  "or parallel",
                  name);
        return EXIT_USAGE;
    }
    if ((*k)->param != (st->nargs > 2)) {
        complain ((*k)->param ? "plot: scatter needs the name of a parameter"
                              : "plot: only scatter takes a parameter");
        return EXIT_USAGE;
    }
    return EXIT_OK;
}

int cmd_plot (const struct settings *st)
{
    struct plot p = { .st = st };
    const struct plot_kind *k;
    struct sweep *s;
    int rv = check_arguments (st, &k);

    if (rv || (rv = open_experiment (st, st->args[0], &s)))
        return rv;
    rv = plot (&p, s, k);
    free (p.order);
    curves_free (&p.curves);
    params_free (&p.params);
    report_free (&p.report);
    sweep_close (s);
    return rv;
}
