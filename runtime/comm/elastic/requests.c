/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for another number of ranks, as rank 0 finds them in the folder. */
#include "runtime/comm/elastic/folder.h"

#include <time.h>

#include "runtime/base/clock.h"

/* s: between two looks */
static const double between = 0.5;

long membership_bounded (const struct membership *g, long n)
{
    if (g->max > 0 && n > g->max)
        n = g->max;
    return n < g->min ? g->min : n;
}

long membership_request (struct membership *g)
{
    double now = monotonic ();
    struct signs v = { 0 };
    long asked, want, size = g->generation->size;
    bool more, over;

    if (g->by_hand || now - g->looked < between || signs_look (&v, g->folder.path, NULL) < 0)
        return 0;
    g->looked = now;
    want = membership_bounded (g, v.target > 0 ? v.target : g->generation->wanted);
    asked = signs_waiting (&v, &g->self, 0);
    /* the ranks of a node come together: see whether more do */
    more = want > size && asked > 0 && asked == g->asked;
    g->asked = asked;
    over = v.highest > g->generation->number;
    signs_free (&v);
    if (over)
        return REQUEST_OVER;
    return want < size || more ? want : 0;
}

void membership_outlast (const struct generation *w)
{
    struct timespec t = { (time_t)(2 * between), 0 };

    if (w->number > 1 && w->kept == 0)
        nanosleep (&t, NULL);
}
