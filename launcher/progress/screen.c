/* SPDX-License-Identifier: Apache-2.0 */
/* Draw full-screen pictures in a terminal and redraw them in place. */
#include "launcher/progress/progress.h"

#include <langinfo.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "launcher/sys/alloc.h"
#include "launcher/sys/terminal.h"
#include "runtime/base/clock.h"

enum { WIDTH_MIN = 20, WIDTH_MAX = 1000, HEIGHT_MIN = 4, HEIGHT_MAX = 500 };

/* ---- the terminal ---- */

static struct {
    bool taken, keys, wants_keys;
    struct termios before;
} terminal;

static volatile sig_atomic_t quit, resized, stopped;

static void on_quit (int sig)
{
    (void)sig;
    quit = 1;
}

static void on_resize (int sig)
{
    (void)sig;
    resized = 1;
}

static void on_stop (int sig)
{
    (void)sig;
    stopped = 1;
}

bool screen_is_there (void)
{
    const char *term = getenv ("TERM");

    return isatty (1) && term && *term && strcmp (term, "dumb");
}

static void enter (void)
{
    struct termios now;

    terminal.keys = terminal.wants_keys && isatty (0) && tcgetpgrp (0) == getpgrp ()
                    && tcgetattr (0, &terminal.before) == 0;
    if (terminal.keys) {
        now = terminal.before;
        now.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr (0, TCSANOW, &now);
    }
    terminal_control ("\033[?1049h\033[?25l\033[H\033[2J");
    fflush (stdout);
    terminal.taken = true;
}

void screen_give_back (void)
{
    if (!terminal.taken)
        return;
    terminal_control ("\033[0m\033[?25h\033[?1049l");
    fflush (stdout);
    if (terminal.keys)
        tcsetattr (0, TCSAFLUSH, &terminal.before);
    terminal.taken = false;
}

void screen_take (bool keys)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
    struct sigaction on = { .sa_handler = on_quit };

    for (size_t i = 0; i < sizeof (ends) / sizeof (*ends); i++)
        sigaction (ends[i], &on, NULL);
    on.sa_handler = on_resize;
    sigaction (SIGWINCH, &on, NULL);
    on.sa_handler = on_stop;
    sigaction (SIGTSTP, &on, NULL);
    terminal.wants_keys = keys;
    atexit (screen_give_back);
    enter ();
}

static void stop_here (void)
{
    stopped = 0;
    screen_give_back ();
    raise (SIGSTOP);
    enter ();
    resized = 1;
}

static bool quit_key (void)
{
    char keys[32];
    ssize_t n = read (0, keys, sizeof (keys));

    if (n <= 0) {
        terminal.keys = false; /* end of input: the terminal is gone */
        return false;
    }
    return memchr (keys, 'q', (size_t)n) || memchr (keys, 'Q', (size_t)n);
}

enum screen_event screen_wait (double seconds)
{
    double until = monotonic () + seconds, left;

    while ((left = until - monotonic ()) > 0 && !quit && !resized) {
        struct pollfd keys = { .fd = terminal.taken && terminal.keys ? 0 : -1, .events = POLLIN };
        if (stopped)
            stop_here ();
        else if (poll (&keys, 1, (int)ceil (left * 1000)) > 0 && quit_key ())
            quit = 1;
    }
    if (quit)
        return SCREEN_QUIT;
    if (!resized)
        return SCREEN_TIME;
    resized = 0;
    return SCREEN_RESIZED;
}

/* ---- one picture ---- */

static int bounded (int n, int least, int most)
{
    return n < least ? least : n > most ? most : n;
}

void screen_begin (struct screen *s, int width, int height)
{
    const char *no = getenv ("NO_COLOR");
    struct winsize ws = { .ws_col = 80, .ws_row = 24 };

    if (width == 0 && ioctl (1, TIOCGWINSZ, &ws) == 0 && ws.ws_col) {
        width = ws.ws_col;
        height = ws.ws_row;
    }
    *s = (struct screen){
        .width = bounded (width ? width : 80, WIDTH_MIN, WIDTH_MAX),
        .height = bounded (height ? height : 24, HEIGHT_MIN, HEIGHT_MAX),
        .utf8 = !strcmp (nl_langinfo (CODESET), "UTF-8"),
        .colours = screen_is_there () && !(no && *no),
    };
    s->f = xopen_memstream (&s->text, &s->size);
}

/* Return whether 'c' is invisible and reorders or moves other characters. */
static bool is_format (wchar_t c)
{
    return (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e)
           || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

/* Convert the first character of 'p' to what the terminal shows: its bytes in 'to'
 * and its columns in '*width'.  Returns how many bytes of 'p' it consumed.
 */
static size_t show_character (const struct screen *s, const char *p, char to[16], int *width)
{
    mbstate_t state = { 0 };
    wchar_t c;
    size_t n = mbrtowc (&c, p, MB_CUR_MAX, &state);
    bool valid = n != (size_t)-1 && n != (size_t)-2 && n > 0;

    if (!valid || (n == 1 && ((unsigned char)*p < ' ' || *p == 0x7f))
        || (n > 1 && c >= 0x80 && c < 0xa0)) {
        snprintf (to, 16, "\\x%02x", (unsigned char)*p);
        *width = 4;
        return 1;
    }
    *width = n == 1 ? 1 : wcwidth (c);
    if (*width < 0 || is_format (c) || (n > 1 && !s->utf8)) {
        snprintf (to, 16, "?");
        *width = 1;
        return n;
    }
    snprintf (to, 16, "%.*s", (int)n, p);
    return n;
}

int screen_columns (const struct screen *s, const char *text)
{
    char shown[16];
    int sum = 0, width;

    while (*text) {
        text += show_character (s, text, shown, &width);
        sum += width;
    }
    return sum;
}

static const char *const sgr[STYLES] = {
    [STYLE_DIM] = "\033[2m",  [STYLE_BOLD] = "\033[1m",     [STYLE_GOOD] = "\033[32m",
    [STYLE_BAD] = "\033[31m", [STYLE_WARNING] = "\033[33m", [STYLE_BUSY] = "\033[36m",
};

/* Append text up to column 'until'.  Text that is cut ends in an ellipsis. */
static void put_cut_text (struct screen *s, enum screen_style style, int until, const char *text)
{
    bool styled = s->colours && sgr[style] && *text;
    bool cut = s->column + screen_columns (s, text) > until;
    char shown[16];
    int width;

    if (s->row >= s->height || s->column >= until)
        return;
    if (styled)
        fputs (sgr[style], s->f);
    while (*text) {
        size_t n = show_character (s, text, shown, &width);
        if (s->column + width > until - cut)
            break;
        fputs (shown, s->f);
        s->column += width;
        text += n;
    }
    if (cut && s->column < until) {
        fputs (s->utf8 ? "…" : "~", s->f);
        s->column++;
    }
    if (styled)
        fputs ("\033[0m", s->f);
}

void screen_put (struct screen *s, enum screen_style style, const char *fmt, ...)
{
    char *text;
    va_list ap;

    va_start (ap, fmt);
    text = xvasprintf (fmt, ap);
    va_end (ap);
    put_cut_text (s, style, s->width, text);
    free (text);
}

static void put_blanks (struct screen *s, int until)
{
    for (; s->column < until && s->column < s->width; s->column++)
        if (s->row < s->height)
            fputc (' ', s->f);
}

void screen_right (struct screen *s, enum screen_style style, int column, const char *text)
{
    put_blanks (s, column - screen_columns (s, text));
    put_cut_text (s, style, s->width, text);
}

void screen_cell (struct screen *s, enum screen_style style, int width, const char *text)
{
    int until = s->column + width;

    put_cut_text (s, style, until < s->width ? until : s->width, text);
    put_blanks (s, until);
}

void screen_bar (struct screen *s, enum screen_style style, int width, double part)
{
    static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
    int full = (int)(fmin (fmax (part, 0), 1) * width * 8);
    char text[8 * 1024] = "";
    char *end = text;

    width = bounded (width, 0, 1000);
    for (int i = 0; i < full / 8; i++)
        end = stpcpy (end, s->utf8 ? "█" : "#");
    if (s->utf8)
        strcpy (end, eighths[full % 8]);
    put_cut_text (s, style, s->width, text);
    full = s->utf8 ? (full + 7) / 8 : full / 8;
    end = text;
    *end = '\0';
    for (int i = full; i < width; i++)
        end = stpcpy (end, s->utf8 ? "·" : "-");
    put_cut_text (s, STYLE_DIM, s->width, text);
}

void screen_line (struct screen *s)
{
    s->column = 0;
    if (s->row < s->height)
        fputc ('\n', s->f);
    s->row++;
}

int screen_room (const struct screen *s)
{
    return s->row < s->height ? s->height - s->row : 0;
}

/* Clear the rest of each line after writing it, which avoids flicker.  Do not end
 * the last line: that would scroll the window.
 */
static void show_lines (char *text)
{
    char *all, *line, *end;
    size_t size;
    FILE *f = xopen_memstream (&all, &size);

    fputs ("\033[H", f);
    for (line = text; line && *line; line = end) {
        if ((end = strchr (line, '\n')))
            *end++ = '\0';
        fprintf (f, "%s\033[K%s", line, end && *end ? "\r\n" : "");
    }
    fputs ("\033[J", f);
    xclose_memstream (f);
    terminal_control ("%s", all);
    fflush (stdout);
    free (all);
}

void screen_end (struct screen *s, FILE *to)
{
    xclose_memstream (s->f);
    if (to)
        fputs (s->text, to);
    else
        show_lines (s->text);
    free (s->text);
    s->text = NULL;
}
