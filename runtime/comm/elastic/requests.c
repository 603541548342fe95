/* SPDX-License-Identifier: Apache-2.0 */
/* What rank 0 of a world sees in the folder meanwhile. */
#include "runtime/comm/elastic/folder.h"

#include <time.h>

#include "runtime/base/clock.h"

/* s: between two looks */
static const double between = 0.5;

long gate_bounded (const struct gate *g, long n)
{
    if (g->max > 0 && n > g->max)
        n = g->max;
    return n < g->min ? g->min : n;
}

long gate_wish (struct gate *g)
{
    double now = monotonic ();
    struct signs v = { 0 };
    long asked, want, size = g->world->size;
    bool more, over;

    if (now - g->looked < between || signs_look (&v, g->dir, NULL) < 0)
        return 0;
    g->looked = now;
    want = gate_bounded (g, v.target > 0 ? v.target : g->world->wanted);
    asked = signs_waiting (&v, &g->self, 0);
    /* the ranks of a node come together: see whether more do */
    more = want > size && asked > 0 && asked == g->asked;
    g->asked = asked;
    over = v.highest > g->world->generation;
    signs_free (&v);
    if (over)
        return WISH_OVER;
    return want < size || more ? want : 0;
}

void gate_outlast (const struct world *w)
{
    struct timespec t = { (time_t)(2 * between), 0 };

    if (w->generation > 1 && w->kept == 0)
        nanosleep (&t, NULL);
}
