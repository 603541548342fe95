/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous successive halving that promotes, in one or several brackets. */
#include "searcher/schedulers/asha.h"

#include "searcher/schedulers/rung.h"
#include "searcher/schedulers/schedulers.h"
#include "searcher/state/state.h"

/* Of n results at a rung the best floor (n / divisor) are promoted as soon as
 * they are among the best: no trial waits for a rung to fill, so that early on
 * a mediocre trial is promoted, too.
 */

/* Whether the trial of a result can be promoted.  A bad trial has ended, and
 * one that was pushed out of the top after its promotion is at a higher rung
 * already.
 */
static bool waits_at_rung (const struct searcher *s, long trial, int rung)
{
    const struct search_trial *t = searcher_trial (s, trial);

    return t->state == TRIAL_PAUSED && t->rung == rung;
}

bool asha_promote (struct searcher *s, long trial, int rung)
{
    if (!waits_at_rung (s, trial, rung) || rung >= s->top)
        return false;
    due_promote (s, trial);
    return true;
}

bool asha_promote_best (struct searcher *s, struct bracket *b, int rung)
{
    struct results r = rung_results (s, b, rung);
    int32_t best = rung_best (&r);

    if (best < 0 || !waits_at_rung (s, r.trial[best], rung))
        return false;
    due_promote (s, r.trial[best]);
    return true;
}

void asha_promote_share (struct searcher *s, struct bracket *b, int rung)
{
    struct results r = rung_results (s, b, rung);

    rung_resize (&r, ratio_share (s->divisor, r.rung->results));
    rung_sort (&r);
    for (int64_t i = r.rung->top - 1; i >= 0; i--)
        asha_promote (s, r.trial[r.ranked[i]], rung);
}

/* A bracket of few trials can end before a rung has enough results to promote
 * one.  Promote its best: otherwise the search would end without a full
 * training (and with less than searcher_preview() announced).
 */
static void promote_last (struct searcher *s, struct bracket *b)
{
    if (b->created < b->trials || b->running > 0 || b->due > 0 || b->highest < 0
        || b->highest == s->rungs - 1 || b->rung[b->highest].top > 0)
        return;
    (void)asha_promote_best (s, b, b->highest);
}

void asha_ended (struct searcher *s, long trial, double value)
{
    struct search_trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);
    struct results r = rung_results (s, b, t->rung);
    int64_t share = ratio_share (s->divisor, r.rung->results + 1);
    int32_t risen = rung_add (&r, trial, value, share);

    if (risen < 0 || !asha_promote (s, r.trial[risen], t->rung))
        promote_last (s, b);
}

/* Without it, the next best trial of a rung may be among the best share. */
void asha_forget (struct searcher *s, long trial)
{
    struct search_trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);

    for (int rung = b->first; rung < t->rung; rung++) {
        struct results r = rung_results (s, b, rung);
        rung_remove (&r, trial);
        asha_promote_share (s, b, rung);
    }
    while (b->highest >= 0 && b->rung[b->highest].results == 0)
        b->highest--;
}

/* The former top rung now has a share to promote; and with fewer trials than
 * planned a bracket may have reached its end.
 */
void asha_extended (struct searcher *s, int top)
{
    s->top = s->rungs - 1;
    for (int i = 0; i < s->brackets; i++) {
        struct bracket *b = searcher_bracket (s, i);
        if (top < s->top)
            asha_promote_share (s, b, top);
        promote_last (s, b);
    }
}

const char *asha_check (const struct search_request *request, int *param)
{
    struct ratio divisor;

    (void)param;
    if (request->config->max_rungs < 1)
        return "max_rungs is below 1";
    return ratio_from (&divisor, request->config->divisor);
}

const char *adaptive_check (const struct search_request *request, int *param)
{
    int heights[RUNGS_MAX];

    if (bracket_heights (request->config->mode, 1, heights) == 0)
        return "unknown mode";
    return asha_check (request, param);
}

int asha_ladder (struct search_plan *plan, const struct search_config *config)
{
    int height;

    (void)ratio_from (&plan->divisor, config->divisor);
    height =
        ladder_height (plan->divisor, config->max_rungs, config->max_length, config->max_trials);
    plan->rungs = ladder_build (plan->divisor, height, config->max_length, plan->length);
    return height;
}

void asha_plan (const struct search_request *request, struct search_plan *plan)
{
    const struct search_config *config = request->config;

    (void)asha_ladder (plan, config);
    plan->brackets = 1;
    plan->bracket[0].trials = config->max_trials;
    plan->bracket[0].limit = config->max_concurrent ?: config->max_trials;
}

/* The ladder of a lower bracket is the upper part of the highest bracket's. */
void adaptive_plan (const struct search_request *request, struct search_plan *plan)
{
    const struct search_config *config = request->config;
    int height = asha_ladder (plan, config), heights[RUNGS_MAX];
    int64_t trials[RUNGS_MAX], limits[RUNGS_MAX];
    int brackets = bracket_heights (config->mode, height, heights);

    plan->brackets = brackets =
        bracket_trials (plan->divisor, config->max_trials, heights, brackets, trials);
    bracket_limits (config->max_concurrent, trials, brackets, limits);
    for (int i = 0; i < brackets; i++) {
        struct bracket *b = plan->bracket + i;
        b->trials = trials[i];
        b->limit = limits[i];
        while (plan->length[b->first]
               < ladder_rung (plan->divisor, config->max_length, heights[i] - 1))
            b->first++;
    }
}

const struct search_scheduler schedule_asha = {
    .check = asha_check,
    .plan = asha_plan,
    .ended = asha_ended,
    .forget = asha_forget,
    .extended = asha_extended,
};

const struct search_scheduler schedule_adaptive = {
    .check = adaptive_check,
    .plan = adaptive_plan,
    .ended = asha_ended,
    .forget = asha_forget,
    .extended = asha_extended,
};

static void auto_plan (const struct search_request *request, struct search_plan *plan)
{
    if (request->config->max_length == 1)
        plan_flat (plan, request->config, request->config->max_trials);
    else
        asha_plan (request, plan);
}

static const char *auto_check (const struct search_request *request, int *param)
{
    return request->config->max_length == 1 ? NULL : asha_check (request, param);
}

const struct search_scheduler schedule_auto = {
    .check = auto_check,
    .plan = auto_plan,
    .ended = asha_ended,
    .forget = asha_forget,
    .extended = asha_extended,
};
