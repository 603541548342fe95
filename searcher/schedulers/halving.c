/* SPDX-License-Identifier: Apache-2.0 */
/* Successive halving, rung by rung; Hyperband. */
#include "searcher/schedulers/asha.h"
#include "searcher/schedulers/rung.h"
#include "searcher/schedulers/schedulers.h"

/* K. Jamieson and A. Talwalkar, AISTATS 2016; L. Li and others, JMLR 18, 2018:
 * once all trials of a rung are trained, the best floor (n / divisor) are
 * promoted, at least one.  Bad trials are never promoted.
 */

static int64_t promoted_share (const struct searcher *s, int64_t all)
{
    int64_t share = ratio_share (s->divisor, all);

    return share > 0 ? share : 1;
}

/* Number of trials that will reach the rung. */
static int64_t rung_trials (const struct bracket *b, int rung)
{
    return rung == b->first ? b->capacity : b->rung[rung - 1].promoted;
}

static void halve_rung (struct searcher *s, struct bracket *b, int rung)
{
    struct results r = rung_results (s, b, rung);
    int64_t all = rung_trials (b, rung);

    if (r.rung->results == 0 || r.rung->results < all)
        return;
    rung_resize (&r, promoted_share (s, all));
    for (int64_t k = 0; k < r.rung->top; k++)
        if (isfinite (r.value[r.ranked[k]]))
            asha_promote (s, r.trial[r.ranked[k]], rung);
}

static void halving_ended (struct searcher *s, long trial, double value)
{
    struct search_trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);
    struct results r = rung_results (s, b, t->rung);

    rung_add (&r, trial, value, promoted_share (s, rung_trials (b, t->rung)));
    halve_rung (s, b, t->rung);
}

/* With fewer trials, rungs may be complete already. */
static void halving_extended (struct searcher *s, int top)
{
    (void)top;
    s->top = s->rungs - 1;
    for (int i = 0; i < s->brackets; i++) {
        struct bracket *b = searcher_bracket (s, i);
        for (int rung = b->first; rung < s->top; rung++)
            halve_rung (s, b, rung);
    }
}

/* Trials that are added later are a search of their own. */
static void halving_widen (struct search_plan *plan, int64_t trials)
{
    if (plan->brackets == BRACKETS_MAX)
        return;
    plan->bracket[plan->brackets++] = (struct bracket){ .trials = trials, .limit = trials };
}

static void halving_plan (const struct search_request *request, struct search_plan *plan)
{
    asha_plan (request, plan);
    if (request->config->max_concurrent == 0)
        plan->bracket[0].limit = request->config->max_trials;
}

/* Number of trials of the bracket that starts 'steps' rungs below the top: ceil
 * ((top + 1) d^steps / (steps + 1)).
 */
static int64_t trials_of_bracket (struct ratio d, int top, int steps)
{
    int64_t power = bracket_width (d, steps + 1, TRIALS_MAX);
    __int128 n = (__int128)(top + 1) * power;

    n = (n + steps) / (steps + 1);
    return n < TRIALS_MAX ? (int64_t)n : TRIALS_MAX;
}

/* Factor by which brackets are widened if there would be too many of them. */
static int64_t widening (const struct search_plan *plan, int64_t trials)
{
    int top = plan->rungs - 1;
    int64_t round = 0, rounds = (BRACKETS_MAX - plan->brackets) / plan->rungs;

    for (int steps = 0; steps <= top; steps++)
        round += trials_of_bracket (plan->divisor, top, steps);
    return rounds > 0 ? (trials + rounds * round - 1) / (rounds * round) : 1;
}

/* Append a bracket.  Returns its number of trials, at most 'left'. */
static int64_t add_bracket (struct search_plan *plan, int64_t times, int64_t left)
{
    struct bracket *b = plan->bracket + plan->brackets;
    int top = plan->rungs - 1;

    b->first = plan->brackets > 0 && b[-1].first < top ? b[-1].first + 1 : 0;
    b->trials = times * trials_of_bracket (plan->divisor, top, top - b->first);
    if (b->trials > left)
        b->trials = left;
    b->limit = b->trials;
    plan->brackets++;
    return b->trials;
}

static void hyperband_widen (struct search_plan *plan, int64_t trials)
{
    int64_t times = widening (plan, trials);

    while (trials > 0 && plan->brackets < BRACKETS_MAX)
        trials -= add_bracket (plan, times, trials);
}

/* Repeat rounds of all brackets until there are max_trials; one round if that is 0. */
static void hyperband_plan (const struct search_request *request, struct search_plan *plan)
{
    const struct search_config *config = request->config;
    struct search_config ladder = *config;
    int64_t left = TRIALS_MAX;

    ladder.max_trials = TRIALS_MAX;
    asha_ladder (plan, &ladder);
    if (config->max_trials > 0)
        hyperband_widen (plan, config->max_trials);
    else
        while (left > 0 && plan->brackets < plan->rungs)
            left -= add_bracket (plan, 1, left);
}

const struct search_scheduler schedule_halving = {
    .check = asha_check,
    .plan = halving_plan,
    .in_order = true,
    .ended = halving_ended,
    .widen = halving_widen,
    .extended = halving_extended,
};

const struct search_scheduler schedule_hyperband = {
    .check = asha_check,
    .plan = hyperband_plan,
    .in_order = true,
    .ended = halving_ended,
    .widen = hyperband_widen,
    .extended = halving_extended,
};

const struct search_scheduler schedule_async_hyperband = {
    .check = asha_check,
    .plan = hyperband_plan,
    .in_order = true,
    .ended = asha_ended,
    .forget = asha_forget,
    .widen = hyperband_widen,
    .extended = asha_extended,
};
