/* SPDX-License-Identifier: Apache-2.0 */
/* A small chart of one line, of Braille dots where there is UTF-8. */
#include "launcher/progress/line_chart.h"

#include <math.h>
#include <stdlib.h>

enum { LABEL = 12, ACROSS = 2, DOWN = 4 }; /* dots of a Braille character */

struct chart {
    int columns, rows; /* dots */
    double low, high;
    bool log;
    unsigned char *dots;
};

static double place (const struct chart *g, double v)
{
    double low = g->log ? log (g->low) : g->low;
    double high = g->log ? log (g->high) : g->high;

    return high > low ? ((g->log ? log (v) : v) - low) / (high - low) : 0.5;
}

static void set_column (struct chart *g, int column, int from, int to)
{
    for (int row = from < to ? from : to; row <= (from < to ? to : from); row++)
        g->dots[row * g->columns + column] = 1;
}

static void plot (struct chart *g, const double *values, long n)
{
    int before = -1;

    for (int i = 0; i < g->columns; i++) {
        double v = values[(long)((double)i / g->columns * (double)n)];
        int row = (int)lround ((1 - place (g, v)) * (g->rows - 1));
        set_column (g, i, before < 0 ? row : before, row);
        before = row;
    }
}

/* Its dots, by their bits. */
static char *put_braille (char *to, const struct chart *g, int x, int y)
{
    static const unsigned char bits[DOWN][ACROSS] = {
        { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
    };
    unsigned set = 0;

    for (int j = 0; j < DOWN; j++)
        for (int i = 0; i < ACROSS; i++)
            if (g->dots[(y * DOWN + j) * g->columns + x * ACROSS + i])
                set |= bits[j][i];
    *to++ = (char)0xe2;
    *to++ = (char)(0xa0 | set >> 6);
    *to++ = (char)(0x80 | (set & 0x3f));
    return to;
}

static void draw_row (struct screen *c, const struct chart *g, int y, int height)
{
    char *text = calloc ((size_t)c->width, 3), *end = text;
    char label[32] = "";

    if (!text)
        return;
    if (y == 0)
        snprintf (label, sizeof (label), "%.5g", g->high);
    else if (y == height - 1)
        snprintf (label, sizeof (label), "%.5g", g->low);
    screen_right (c, STYLE_DIM, LABEL - 2, label);
    screen_put (c, STYLE_DIM, c->utf8 ? " │" : " |");
    for (int x = 0; x < c->width - LABEL; x++)
        if (c->utf8)
            end = put_braille (end, g, x, y);
        else
            *end++ = g->dots[y * g->columns + x] ? '*' : ' ';
    screen_put (c, STYLE_GOOD, "%s", text);
    screen_line (c);
    free (text);
}

void line_chart (struct screen *c, const double *values, long n, int height)
{
    struct chart g = { .columns = (c->width - LABEL) * (c->utf8 ? ACROSS : 1),
                       .rows = height * (c->utf8 ? DOWN : 1),
                       .low = INFINITY,
                       .high = -INFINITY };

    if (g.columns < 4 || !(g.dots = calloc ((size_t)g.columns, (size_t)g.rows)))
        return;
    for (long i = 0; i < n; i++) {
        g.low = fmin (g.low, values[i]);
        g.high = fmax (g.high, values[i]);
    }
    g.log = g.low > 0 && g.high / g.low > 20;
    plot (&g, values, n);
    for (int y = 0; y < height; y++)
        draw_row (c, &g, y, height);
    free (g.dots);
}
