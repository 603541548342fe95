/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous successive halving that promotes, in one or several brackets. */
#include <math.h>

#include "searcher/state.h"

/* Of n results in a rung the best floor (n / divisor) go on to the next, as
 * soon as they are among them: nothing waits for a rung to fill, so that early
 * on a mediocre trial is promoted, too.  Among equal values the one that was
 * reported first is better: were it the last, trials that all give the same
 * value would all be promoted.
 *
 * The results of a rung are numbered in the order in which they come, and are
 * kept in two heaps: the top ones, with the worst of them at the root, and the
 * rest, with the best of them at the root.  One report moves at most one
 * result from heap to heap.  The heaps share one array and grow from its ends.
 */
struct results {
    struct rung *rung;
    int64_t capacity;
    double *value;   /* smaller is better, INFINITY: bad */
    int32_t *trial;  /* that gave it */
    int32_t *ranked; /* the heaps, of indices of results */
};

static struct results results (struct searcher *s, struct bracket *b, int rung)
{
    int64_t capacity = b->trials;
    int64_t at = b->results + (rung - b->first) * capacity * RESULT_SIZE;
    int64_t after = at + capacity * (int64_t)sizeof (double);
    int32_t *trial = searcher_at (s, after);

    return (struct results){
        b->rung + rung, capacity, searcher_at (s, at), trial, trial + capacity,
    };
}

struct heap {
    int32_t *root;
    int step; /* to the next element: 1 or -1 */
    int64_t n;
    bool worst_first;
    const double *value;
};

static struct heap top_heap (const struct results *r)
{
    return (struct heap){ r->ranked, 1, r->rung->top, true, r->value };
}

static struct heap rest_heap (const struct results *r)
{
    return (struct heap){ r->ranked + r->capacity - 1,
                          -1,
                          r->rung->results - r->rung->top,
                          false,
                          r->value };
}

static bool better (const double *value, int32_t a, int32_t b)
{
    return value[a] < value[b] || (value[a] == value[b] && a < b);
}

static int32_t *heap_at (const struct heap *h, int64_t i)
{
    return h->root + i * h->step;
}

/* Does 'a' belong nearer to the root than 'b'? */
static bool heap_before (const struct heap *h, int32_t a, int32_t b)
{
    return h->worst_first ? better (h->value, b, a) : better (h->value, a, b);
}

static void heap_push (struct heap *h, int32_t result)
{
    int64_t i = h->n++;

    while (i > 0 && heap_before (h, result, *heap_at (h, (i - 1) / 2))) {
        *heap_at (h, i) = *heap_at (h, (i - 1) / 2);
        i = (i - 1) / 2;
    }
    *heap_at (h, i) = result;
}

static int32_t heap_pop (struct heap *h)
{
    int32_t popped = *h->root, last = *heap_at (h, --h->n);
    int64_t i = 0, child;

    while ((child = 2 * i + 1) < h->n) {
        if (child + 1 < h->n
            && heap_before (h, *heap_at (h, child + 1), *heap_at (h, child)))
            child++;
        if (!heap_before (h, *heap_at (h, child), last))
            break;
        *heap_at (h, i) = *heap_at (h, child);
        i = child;
    }
    *heap_at (h, i) = last;
    return popped;
}

/* Rank the result; returns the one that has newly come to the top, or -1.
 * The new result itself may have: it is then the one that is returned.
 */
static int32_t rank_result (struct results *r, int32_t result, int64_t share)
{
    struct heap top = top_heap (r), rest = rest_heap (r);
    int32_t risen = -1;

    if (top.n > 0 && better (r->value, result, *top.root)) {
        heap_push (&top, risen = result);
        if (top.n > share)
            heap_push (&rest, heap_pop (&top));
    } else {
        heap_push (&rest, result);
        if (top.n < share)
            heap_push (&top, risen = heap_pop (&rest));
    }
    r->rung->top = top.n;
    r->rung->results++;
    return risen;
}

/* Can the trial of a result be promoted?  A bad one has ended, and one that was
 * pushed out of the top after its promotion is in a higher rung.
 */
static bool waits (const struct searcher *s, long trial, int rung)
{
    const struct trial *t = searcher_trial (s, trial);

    return t->state == TRIAL_PAUSED && t->rung == rung;
}

/* A bracket of few trials can end before a rung has a share to promote: its
 * best goes on all the same, or the search would end without one trial that
 * was trained in full (and below what searcher_preview() said).
 */
static void promote_last (struct searcher *s, struct bracket *b)
{
    struct results r;
    int32_t best;

    if (b->created < b->trials || b->running > 0 || b->due > 0
        || b->highest == s->rungs - 1 || b->rung[b->highest].top > 0)
        return;
    r = results (s, b, b->highest);
    best = r.trial[*rest_heap (&r).root];
    if (waits (s, best, b->highest))
        searcher_promote (s, best);
}

static void asha_report (struct searcher *s, long trial, double value)
{
    struct trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);
    struct results r = results (s, b, t->rung);
    int32_t result = r.rung->results;
    int32_t risen;

    r.trial[result] = trial;
    r.value[result] = !isfinite (value)      ? INFINITY
                      : s->smaller_is_better ? value
                                             : -value;
    risen = rank_result (&r, result, ratio_share (s->divisor, result + 1));
    if (risen >= 0 && waits (s, r.trial[risen], t->rung))
        searcher_promote (s, r.trial[risen]);
    else
        promote_last (s, b);
}

static const char *asha_check (const struct request *request, int *param)
{
    struct ratio divisor;

    (void)param;
    if (request->config->max_rungs < 1)
        return "max_rungs is below 1";
    return ratio_from (&divisor, request->config->divisor);
}

static const char *adaptive_check (const struct request *request, int *param)
{
    int heights[RUNGS_MAX];

    if (bracket_heights (request->config->mode, 1, heights) == 0)
        return "unknown mode";
    return asha_check (request, param);
}

/* Fill the plan's ladder.  Returns its height before rungs were merged. */
static int plan_ladder (struct plan *plan, const struct search_config *config)
{
    int height;

    (void)ratio_from (&plan->divisor, config->divisor);
    height = ladder_height (plan->divisor,
                            config->max_rungs,
                            config->max_length,
                            config->max_trials);
    plan->rungs =
        ladder_build (plan->divisor, height, config->max_length, plan->length);
    return height;
}

static void asha_plan (const struct request *request, struct plan *plan)
{
    const struct search_config *config = request->config;
    int height = plan_ladder (plan, config);

    plan->brackets = 1;
    plan->bracket[0].trials = config->max_trials;
    plan->bracket[0].limit = config->max_concurrent;
    if (config->max_concurrent == 0)
        plan->bracket[0].limit =
            bracket_width (plan->divisor, height, config->max_trials);
}

/* The ladder of a lower bracket is the upper part of the highest one's. */
static void adaptive_plan (const struct request *request, struct plan *plan)
{
    const struct search_config *config = request->config;
    int height = plan_ladder (plan, config), heights[RUNGS_MAX];
    int64_t trials[RUNGS_MAX], limits[RUNGS_MAX];
    int brackets = bracket_heights (config->mode, height, heights);

    plan->brackets = brackets = bracket_trials (
        plan->divisor, config->max_trials, heights, brackets, trials);
    bracket_limits (
        plan->divisor, config->max_concurrent, trials, brackets, limits);
    for (int i = 0; i < brackets; i++) {
        struct bracket *b = plan->bracket + i;
        b->trials = trials[i];
        b->limit = limits[i];
        while (plan->length[b->first] < ladder_rung (
                   plan->divisor, config->max_length, heights[i] - 1))
            b->first++;
    }
}

const struct searcher_ops searcher_asha = {
    .check = asha_check,
    .plan = asha_plan,
    .point = random_point,
    .report = asha_report,
};

const struct searcher_ops searcher_adaptive_asha = {
    .check = adaptive_check,
    .plan = adaptive_plan,
    .point = random_point,
    .report = asha_report,
};
