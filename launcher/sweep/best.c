/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a trial, which trial is the best, and the Pareto front. */
#include "launcher/sweep/best.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/queries.h"
#include "launcher/sys/alloc.h"

static long repeats_of (const struct sweep *s)
{
    return s->exp->search->config.repeats;
}

/* ---- the values of a trial ---- */

static double value_at (const struct sweep *s, const struct sweep_trial *t, int64_t length,
                        size_t metric)
{
    for (size_t i = t->nmilestones; i > 0; i--) {
        const struct milestone *m = &t->milestones[i - 1];
        if (m->length == length)
            return sweep_metrics (s) > 1 ? m->values[metric] : m->metric;
    }
    return NAN;
}

/* The length at which to compare a trial: the longest that it reached, up to 'most' unless that is
 * 0.
 */
static int64_t length_of_trial (const struct sweep_trial *t, int64_t most)
{
    for (size_t i = t->nmilestones; i > 0; i--)
        if (most == 0 || t->milestones[i - 1].length <= most)
            return t->milestones[i - 1].length;
    return t->nmilestones ? t->milestones[0].length : 0;
}

/* ---- the values of a point ---- */

static struct sweep_result mean_at_length (const struct sweep *s, long point, int64_t length,
                                           size_t metric)
{
    struct sweep_result r = { .value = NAN, .deviation = NAN };
    long first = (point - 1) * repeats_of (s) + 1;
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;

    for (long i = first; i < first + repeats_of (s) && i <= s->ntrials; i++) {
        double x = value_at (s, sweep_trial (s, i), length, metric);
        if (!isfinite (x))
            continue;
        sum += x;
        low = fmin (low, x);
        high = fmax (high, x);
        r.n++;
    }
    if (r.n == 0)
        return r;
    r.length = length;
    r.value = low == high ? low : sum / (double)r.n; /* avoid a rounding error if all are equal */
    for (long i = first; i < first + repeats_of (s) && i <= s->ntrials; i++) {
        double x = value_at (s, sweep_trial (s, i), length, metric) - r.value;
        squares += isfinite (x) ? x * x : 0;
    }
    if (r.n > 1)
        r.deviation = sqrt (squares / (double)(r.n - 1));
    return r;
}

struct sweep_result point_result_at (const struct sweep *s, long point, int64_t length)
{
    return mean_at_length (s, point, length, 0);
}

/* ---- the length at which points are compared, and the best point ---- */

struct length_count {
    int64_t length;
    long n; /* how many trials of one point have a finite value there */
};

static int by_point_length (const void *a, const void *b)
{
    const struct length_count *x = a, *y = b;

    return (x->length > y->length) - (x->length < y->length);
}

/* Whether an earlier trial of the same point also has a value at this length. */
static bool point_is_counted (const struct sweep *s, long trial, int64_t length)
{
    for (long i = trial - trial_repeat (s, trial); i < trial; i++)
        if (isfinite (value_at (s, sweep_trial (s, i), length, 0)))
            return true;
    return false;
}

/* List the lengths at which each point has a value, sorted.  Returns how many there are. */
static size_t list_lengths (const struct sweep *s, struct length_count **list)
{
    size_t n = 0;

    for (long i = 0; i < s->ntrials; i++)
        n += s->trials[i].nmilestones;
    *list = xcalloc (n + 1, sizeof (**list));
    n = 0;
    for (long i = 1; i <= s->ntrials; i++) {
        const struct sweep_trial *t = sweep_trial (s, i);
        for (size_t k = 0; k < t->nmilestones; k++) {
            int64_t length = t->milestones[k].length;
            if (isfinite (value_at (s, t, length, 0)) && !point_is_counted (s, i, length))
                (*list)[n++] =
                    (struct length_count){ length,
                                           mean_at_length (s, trial_point (s, i), length, 0).n };
        }
    }
    qsort (*list, n, sizeof (**list), by_point_length);
    return n;
}

static void choose_length (const struct sweep *s, struct standing *found)
{
    struct length_count *list;
    size_t n = list_lengths (s, &list);
    double below = 0;

    for (size_t i = 0; i < n; i++)
        found->n = list[i].n > found->n ? list[i].n : found->n;
    for (size_t i = 0, next; i < n; i = next) {
        double here = 0;
        for (next = i; next < n && list[next].length == list[i].length; next++)
            here += list[next].n == found->n;
        if (here < 1 || here < floor (below / s->exp->search->config.divisor / 2))
            continue;
        found->length = list[i].length;
        below = here;
    }
    free (list);
}

/* No repeat of a point is better than their mean, so show the one nearest to it. */
static long nearest_repeat (const struct sweep *s, long point, const struct sweep_result *r)
{
    long first = (point - 1) * repeats_of (s) + 1, found = 0;
    double least = INFINITY;

    for (long i = first; i < first + repeats_of (s) && i <= s->ntrials; i++) {
        double off = fabs (value_at (s, sweep_trial (s, i), r->length, 0) - r->value);
        if (off < least || (!found && isfinite (off))) {
            least = off;
            found = i;
        }
    }
    return found;
}

static long points_begun (const struct sweep *s)
{
    return s->ntrials ? trial_point (s, s->ntrials) : 0;
}

static const struct standing *standing_of (const struct sweep *s)
{
    struct standing *found = (struct standing *)&s->standing;
    double best = NAN;

    if (found->results == s->nresults)
        return found;
    *found = (struct standing){ .results = s->nresults };
    choose_length (s, found);
    for (long i = 1; found->length && i <= points_begun (s); i++) {
        struct sweep_result r = mean_at_length (s, i, found->length, 0);
        if (r.n < found->n || !sweep_better (s, r.value, best))
            continue;
        best = r.value;
        found->best = nearest_repeat (s, i, &r);
    }
    return found;
}

long sweep_best (const struct sweep *s)
{
    return standing_of (s)->best;
}

int64_t sweep_best_length (const struct sweep *s)
{
    return standing_of (s)->length;
}

/* ---- results ---- */

static void set_compared (const struct sweep *s, struct sweep_result *r, long n)
{
    const struct standing *standing = standing_of (s);

    r->compared = isfinite (r->value) && r->length == standing->length && n == standing->n;
}

struct sweep_result point_result (const struct sweep *s, long point, size_t metric)
{
    int64_t most = standing_of (s)->length, length = 0;
    long first = (point - 1) * repeats_of (s) + 1;
    struct sweep_result r;

    for (long i = first; i < first + repeats_of (s) && i <= s->ntrials; i++) {
        int64_t own = length_of_trial (sweep_trial (s, i), most);
        length = own > length ? own : length;
    }
    r = mean_at_length (s, point, length, metric);
    r.length = length;
    set_compared (s, &r, metric ? mean_at_length (s, point, length, 0).n : r.n);
    return r;
}

struct sweep_result trial_result (const struct sweep *s, long trial, size_t metric)
{
    const struct sweep_trial *t = sweep_trial (s, trial);
    int64_t length = length_of_trial (t, standing_of (s)->length);
    struct sweep_result r = { value_at (s, t, length, metric), NAN, length > 0, length, false };

    set_compared (s, &r, point_result_at (s, trial_point (s, trial), length).n);
    return r;
}

/* ---- the best so far ---- */

int best_walk_begin (struct best_walk *w, const struct sweep *s)
{
    *w = (struct best_walk){ .sweep = s, .best = NAN };
    w->seen = xcalloc ((size_t)s->ntrials + 1, sizeof (*w->seen));
    return 0;
}

bool best_walk_take (struct best_walk *w, long trial, int64_t length)
{
    const struct standing *standing = standing_of (w->sweep);
    long point = trial_point (w->sweep, trial);
    struct sweep_result r = point_result_at (w->sweep, point, length);

    if (w->seen[point].length != length)
        w->seen[point].n = 0;
    w->seen[point].length = length;
    if (++w->seen[point].n < r.n || r.n < standing->n || length > standing->length)
        return false;
    if (length > w->length || (length == w->length && sweep_better (w->sweep, r.value, w->best))) {
        w->length = length;
        w->best = r.value;
    }
    return true;
}

void best_walk_end (struct best_walk *w)
{
    free (w->seen);
    w->seen = NULL;
}

/* ---- as text ---- */

/* "mean of 2 of 3, deviation 0.02" */
static void mean_text (const struct sweep *s, const struct sweep_result *r, char *buf, size_t size)
{
    char of[32] = "", deviation[48] = "";

    if (r->n < repeats_of (s))
        snprintf (of, sizeof (of), " of %ld", repeats_of (s));
    if (r->n > 1)
        snprintf (deviation, sizeof (deviation), ", deviation %.2g", r->deviation);
    snprintf (buf, size, "mean of %ld%s%s", r->n, of, deviation);
}

void sweep_best_text (const struct sweep *s, const char *of, char *buf, size_t size)
{
    long best = sweep_best (s), repeats = repeats_of (s), point;
    char mean[128], at[48] = "";
    struct sweep_result r;

    *buf = '\0';
    if (!best)
        return;
    point = trial_point (s, best);
    r = point_result (s, point, 0);
    if (s->exp->search->config.max_length > 1)
        snprintf (at, sizeof (at), " at length %lld", (long long)r.length);
    mean_text (s, &r, mean, sizeof (mean));
    if (repeats > 1)
        snprintf (buf, size, "%s %.6g (%s): point %ld, trials %ld to %ld%s%s%s",
                  sweep_metric (s, 0), r.value, mean, point, (point - 1) * repeats + 1,
                  point * repeats, of ? " of " : "", of ? of : "", at);
    else
        snprintf (buf, size, "%s %.6g: trial %ld%s%s%s", sweep_metric (s, 0), r.value, best,
                  of ? " of " : "", of ? of : "", at);
}

/* ---- the seed ---- */

/* Count the points with values of several repeats, and in *same those of them whose values are all
 * equal.
 */
static long repeated_points (const struct sweep *s, long *same)
{
    long n = 0;

    *same = 0;
    for (long i = 1; repeats_of (s) > 1 && i <= points_begun (s); i++) {
        struct sweep_result r = point_result (s, i, 0);
        n += r.n > 1;
        *same += r.n > 1 && r.deviation == 0;
    }
    return n;
}

const char *sweep_seed_unused (const struct sweep *s)
{
    long same, n = repeated_points (s, &same);

    /* two values of a single point may be equal by chance */
    if (n == 0 || same < n || (n == 1 && point_result (s, 1, 0).n < 3))
        return NULL;
    return "the repeats of every point gave the same value: the training does "
           "not use the seed ({seed}, DL_SEED), or the metric cannot show it";
}

/* ---- in order ---- */

struct ranked {
    struct sweep_result of;
    long trial;
    bool smaller;
};

/* Points that are compared come first, then those that were trained longer. */
static int best_value_first (const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    bool have = isfinite (x->of.value), has = isfinite (y->of.value);

    if (x->of.compared != y->of.compared)
        return x->of.compared ? -1 : 1;
    if (have != has)
        return have ? -1 : 1;
    if (have && x->of.length != y->of.length)
        return x->of.length > y->of.length ? -1 : 1;
    if (have && x->of.n != y->of.n)
        return x->of.n > y->of.n ? -1 : 1;
    if (have && x->of.value != y->of.value)
        return (x->of.value < y->of.value) == x->smaller ? -1 : 1;
    return x->trial < y->trial ? -1 : 1;
}

long *sweep_order (const struct sweep *s)
{
    struct ranked *list = xcalloc ((size_t)s->ntrials + 1, sizeof (*list));
    long *trials = xcalloc ((size_t)s->ntrials + 1, sizeof (*trials));

    for (long i = 0; i < s->ntrials; i++)
        list[i] = (struct ranked){
            trial_repeat (s, i + 1) ? list[i - 1].of : point_result (s, trial_point (s, i + 1), 0),
            i + 1,
            s->exp->search->config.smaller_is_better,
        };
    if (s->ntrials)
        qsort (list, (size_t)s->ntrials, sizeof (*list), best_value_first);
    for (long i = 0; i < s->ntrials; i++)
        trials[i] = list[i].trial;
    free (list);
    return trials;
}

/* ---- the Pareto front ---- */

/* The values of a trial's point with the sign changed where larger is better, so that smaller is
 * always better.  NaN: the point is not compared.
 */
static void fill_point_values (const struct sweep *s, long trial, double *v)
{
    for (size_t i = 0; i < sweep_metrics (s); i++) {
        struct sweep_result r = point_result (s, trial_point (s, trial), i);
        bool larger =
            i ? s->exp->search->config.larger[i] : !s->exp->search->config.smaller_is_better;
        v[i] = !r.compared ? NAN : larger ? -r.value : r.value;
    }
}

static bool values_are_finite (const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite (v[i]))
            return false;
    return true;
}

/* Whether 'a' is better than 'b' in one metric, and worse in none. */
static bool dominates_point (const double *a, const double *b, size_t n)
{
    bool better = false;

    for (size_t i = 0; i < n; i++) {
        if (!(a[i] <= b[i]))
            return false;
        better = better || a[i] < b[i];
    }
    return better;
}

bool *sweep_front (const struct sweep *s)
{
    bool *front = xcalloc ((size_t)s->ntrials + 1, sizeof (*front));
    size_t n = sweep_metrics (s);
    double *v = xcalloc ((size_t)s->ntrials * n + 1, sizeof (*v));

    for (long i = 0; i < s->ntrials; i++)
        fill_point_values (s, i + 1, v + (size_t)i * n);
    for (long i = 0; i < s->ntrials; i++) {
        const double *own = v + (size_t)i * n;
        front[i] = values_are_finite (own, n);
        for (long k = 0; front[i] && k < s->ntrials; k++)
            front[i] = !values_are_finite (v + (size_t)k * n, n)
                       || !dominates_point (v + (size_t)k * n, own, n);
    }
    free (v);
    return front;
}
