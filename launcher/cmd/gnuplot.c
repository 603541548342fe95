/* SPDX-License-Identifier: Apache-2.0 */
/* gnuplot as a program: what it can draw on, and safe text for it. */
#include "launcher/cmd/gnuplot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "launcher/sys/subprocess.h"
#include "runtime/base/error.h"

enum { TIMEOUT = 120 /* s */, ANSWER = 8192 };

const char *const plot_media[PLOT_MEDIA] = {
    "dumb", "block", "sixel", "kitty", "svg", "png", "pdf",
};

/* The best first; what gnuplot calls them. */
static const char *const names[PLOT_MEDIA][3] = {
    [PLOT_DUMB] = { "dumb" },     [PLOT_BLOCK] = { "block" },
    [PLOT_SIXEL] = { "sixelgd" }, [PLOT_KITTY] = { "kittycairo", "kittygd" },
    [PLOT_SVG] = { "svg" },       [PLOT_PNG] = { "pngcairo", "png" },
    [PLOT_PDF] = { "pdfcairo" },
};

bool plot_is_text (enum plot_medium m)
{
    return m == PLOT_DUMB || m == PLOT_BLOCK;
}

int gnuplot_terminals (char *buf, size_t size)
{
    struct command c = { .timeout = TIMEOUT };
    int rv;

    command_add (&c, "gnuplot", NULL);
    command_add (&c, "-d", NULL); /* no file of the user's */
    command_add (&c, "-e", NULL);
    command_add (&c, "print ' ' . GPVAL_TERMINALS . ' '", NULL);
    rv = command_run (&c, NULL, buf, size);
    command_free (&c);
    return rv;
}

static const char *name_of (const char *terminals, enum plot_medium m)
{
    char word[32];

    for (int i = 0; names[m][i]; i++) {
        snprintf (word, sizeof (word), " %s ", names[m][i]);
        if (strstr (terminals, word))
            return names[m][i];
    }
    return NULL;
}

bool gnuplot_has (const char *terminals, enum plot_medium m)
{
    return name_of (terminals, m);
}

void gnuplot_begin (FILE *f, const char *terminals, enum plot_medium m, int columns, int lines,
                    bool colours)
{
    const char *name = name_of (terminals, m);

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
        fprintf (f, "set terminal svg noenhanced size 960,600 background 'white' "
                    "font 'sans,14'\n");
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

/* In single quotes only a quote is special, and gnuplot 5.4 does not always
 * take two of them for one: another character stands for it.  What could be
 * taken for a substitution is replaced, too, and a tic's label is a format.
 */
static void put_text (FILE *f, const char *text, bool tic)
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

void gnuplot_text (FILE *f, const char *text)
{
    put_text (f, text, false);
}

void gnuplot_tic (FILE *f, const char *text)
{
    put_text (f, text, true);
}

/* Variables that lead gnuplot to other files. */
static void prepare (const void *arg)
{
    static const char *const variables[] = { "GNUTERM", "GNUPLOT_LIB", "GNUPLOT_DRIVER_DIR",
                                             "GNUPLOT_PS_DIR" };

    (void)arg;
    for (size_t i = 0; i < sizeof (variables) / sizeof (*variables); i++)
        unsetenv (variables[i]);
    alarm (TIMEOUT);
}

static char *read_back (FILE *f, size_t *n)
{
    long size = fseek (f, 0, SEEK_END) == 0 ? ftell (f) : -1;
    char *text = size >= 0 ? malloc ((size_t)size + 1) : NULL;

    rewind (f);
    if (text) {
        *n = fread (text, 1, (size_t)size, f);
        text[*n] = '\0';
    }
    return text;
}

static int run (FILE *io[3])
{
    static char *const argv[] = { "gnuplot", "-d", "-", NULL };
    const struct spawn s = {
        .argv = argv,
        .io = { fileno (io[0]), fileno (io[1]), fileno (io[2]) },
        .prepare = prepare,
    };

    return subprocess_wait (subprocess_spawn (&s));
}

/* The last line that is none of the script. */
static int tell (FILE *errors, int status, struct slurmdl_error *err)
{
    size_t n = 0;
    char *text = read_back (errors, &n), *line = text;

    while (n > 0 && text[n - 1] == '\n')
        text[--n] = '\0';
    if (text && strrchr (text, '\n'))
        line = strrchr (text, '\n') + 1;
    errno = EIO;
    errorf (err, "gnuplot has failed (exit status %d): %.80s", status, line ? line : "");
    free (text);
    return -1;
}

int gnuplot_run (const char *script, size_t size, char **out, size_t *nout,
                 struct slurmdl_error *err)
{
    FILE *io[3] = { tmpfile (), tmpfile (), tmpfile () };
    int rv = -1;
    int status;

    *out = NULL;
    if (!io[0] || !io[1] || !io[2] || fwrite (script, 1, size, io[0]) != size || fflush (io[0]) != 0
        || fseek (io[0], 0, SEEK_SET) != 0)
        errorf (err, "cannot write a temporary file: %s", strerror (errno));
    else if ((status = run (io)) != 0)
        tell (io[2], status, err);
    else if (!(*out = read_back (io[1], nout)))
        errorf (err, "out of memory");
    else
        rv = 0;
    for (int i = 0; i < 3; i++)
        if (io[i])
            fclose (io[i]);
    return rv;
}
