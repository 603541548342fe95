/* SPDX-License-Identifier: Apache-2.0 */
/* Group failures by cause and find the parameter values at which they concentrate. */
#include "launcher/report/report.h"

#include <math.h>
#include <stdlib.h>

#include "launcher/sys/alloc.h"
#include "runtime/base/array.h"

/* How many failed trials a finding needs, how many cuts to compare for a number, and
 * how many choices for a category.
 */
enum { NEED = 5, CUTS = 10, CHOICES = 50 };

static int by_attempts (const void *a, const void *b)
{
    const struct failure_cause *x = a, *y = b;

    if (x->attempts != y->attempts)
        return x->attempts > y->attempts ? -1 : 1;
    return (x->cause > y->cause) - (x->cause < y->cause);
}

long failure_causes (const struct report *r, struct failure_cause **list)
{
    struct failure_cause *found = xcalloc (r->causes.n + 1, sizeof (*found));
    long n = 0;

    *list = found;
    for (size_t i = 0; i < r->nattempts; i++) {
        size_t cause = r->attempts[i].cause;
        if (!r->causes.list[cause][0] || r->attempts[i].how == ATTEMPT_PARKED)
            continue;
        found[cause].cause = cause;
        found[cause].attempts++;
        found[cause].last = i;
    }
    qsort (found, r->causes.n, sizeof (*found), by_attempts);
    while (n < (long)r->causes.n && found[n].attempts > 0)
        n++;
    return n;
}

static bool finding_covers (const struct failure_finding *c, double v)
{
    if (isnan (v))
        return false;
    return c->p->category ? v == c->at : c->above ? v >= c->at : v < c->at;
}

static void compare_shares (struct failure_finding *found, struct failure_finding c,
                            const bool *failed, long n, long all)
{
    long in = 0, hit = 0, out;

    for (long i = 0; i < n; i++)
        if (finding_covers (&c, c.p->began[i])) {
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

static void compare_number (struct failure_finding *found, const struct report_param *p,
                            const bool *failed, long n, long all)
{
    double *v = xmalloc (((size_t)n + 1) * sizeof (*v));
    long known = 0;

    for (long i = 0; i < n; i++)
        if (!isnan (p->began[i]))
            v[known++] = p->began[i];
    qsort (v, (size_t)known, sizeof (*v), compare_doubles);
    for (int k = 1; k < CUTS && known > 0; k++)
        for (int above = 0; above < 2; above++)
            compare_shares (
                found,
                (struct failure_finding){ .p = p, .above = above, .at = v[known * k / CUTS] },
                failed, n, all);
    free (v);
}

struct failure_finding failure_explain (const struct report *r, const struct report_params *p,
                                        const bool *failed)
{
    struct failure_finding found = { 0 };
    long all = 0;

    for (long i = 0; i < r->n; i++)
        all += failed[i];
    for (size_t k = 0; all >= NEED && all < r->n && k < p->n; k++) {
        const struct report_param *of = &p->list[k];
        for (size_t c = 0; of->category && c < of->table.n && c < CHOICES; c++)
            compare_shares (&found, (struct failure_finding){ .p = of, .at = (double)c }, failed,
                            r->n, all);
        if (!of->category)
            compare_number (&found, of, failed, r->n, all);
    }
    return found;
}
