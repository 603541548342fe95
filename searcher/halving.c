/* SPDX-License-Identifier: Apache-2.0 */
/* Successive halving, a rung at a time; Hyperband. */
#include "searcher/asha.h"
#include "searcher/rung.h"

/* K. Jamieson and A. Talwalkar, AISTATS 2016; L. Li and others, JMLR 18, 2018:
 * when a whole rung is trained, its best floor (n / divisor) go on, at least
 * one.  Bad trials go nowhere.
 */
static void halving_ended (struct searcher *s, long trial, double value)
{
    struct trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);
    struct results r = rung_results (s, b, t->rung);
    int rung = t->rung;
    int64_t all = rung == b->first ? b->capacity : b->rung[rung - 1].top;
    int64_t share = ratio_share (s->divisor, all);

    rung_add (&r, trial, value, share > 0 ? share : 1);
    if (r.rung->results < all)
        return;
    share = 0;
    for (int64_t k = 0; k < r.rung->top; k++)
        share += isfinite (r.value[r.ranked[k]])
                 && asha_promote (s, r.trial[r.ranked[k]], rung);
    r.rung->top = share;
}

static void halving_plan (const struct request *request, struct plan *plan)
{
    asha_plan (request, plan);
    if (request->config->max_concurrent == 0)
        plan->bracket[0].limit = request->config->max_trials;
}

/* ---- hyperband ---- */

/* Trials of the bracket that starts 'steps' rungs below the top one:
 * ceil ((top + 1) d^steps / (steps + 1)).
 */
static int64_t width (struct ratio d, int top, int steps)
{
    int64_t power = bracket_width (d, steps + 1, TRIALS_MAX);
    __int128 n = (__int128)(top + 1) * power;

    n = (n + steps) / (steps + 1);
    return n < TRIALS_MAX ? (int64_t)n : TRIALS_MAX;
}

/* So many times as wide are the brackets if there would be too many. */
static int64_t widening (const struct plan *plan, int64_t trials)
{
    int top = plan->rungs - 1;
    int64_t round = 0, rounds = BRACKETS_MAX / plan->rungs;

    for (int steps = 0; steps <= top; steps++)
        round += width (plan->divisor, top, steps);
    return (trials + rounds * round - 1) / (rounds * round);
}

/* Rounds of all brackets until there are max_trials, one if that is 0. */
static void hyperband_plan (const struct request *request, struct plan *plan)
{
    const struct search_config *config = request->config;
    struct search_config ladder = *config;
    int64_t left = config->max_trials > 0 ? config->max_trials : TRIALS_MAX;
    int64_t times = 1;
    int top;

    ladder.max_trials = TRIALS_MAX;
    asha_ladder (plan, &ladder);
    top = plan->rungs - 1;
    if (config->max_trials > 0)
        times = widening (plan, left);
    for (int first = 0; left > 0 && plan->brackets < BRACKETS_MAX; first++) {
        struct bracket *b = plan->bracket + plan->brackets;
        if (first > top) {
            if (config->max_trials == 0)
                break;
            first = 0;
        }
        b->first = first;
        b->trials = times * width (plan->divisor, top, top - first);
        if (b->trials > left)
            b->trials = left;
        b->limit = b->trials;
        left -= b->trials;
        plan->brackets++;
    }
}

const struct scheduler schedule_halving = {
    .check = asha_check,
    .plan = halving_plan,
    .ended = halving_ended,
};

const struct scheduler schedule_hyperband = {
    .check = asha_check,
    .plan = hyperband_plan,
    .in_order = true,
    .ended = halving_ended,
};

const struct scheduler schedule_async_hyperband = {
    .check = asha_check,
    .plan = hyperband_plan,
    .in_order = true,
    .ended = asha_ended,
};
