/* SPDX-License-Identifier: Apache-2.0 */
/* Extend a search: more trials, longer ones, more time. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/schedulers/rung.h"
#include "searcher/search/build.h"
#include "searcher/search/events.h"
#include "searcher/search/kinds.h"
#include "searcher/state/state.h"

/* ---- the plan ---- */

static int plan_open (struct search_plan *plan, const struct searcher *s)
{
    *plan = (struct search_plan){
        .divisor = s->divisor,
        .rungs = s->rungs,
        .brackets = s->brackets,
        .whole = s->divisor.p == s->divisor.q,
        .bracket = calloc (BRACKETS_MAX, sizeof (*plan->bracket)),
    };
    if (!plan->bracket)
        return -1;
    memcpy (plan->length, s->length, sizeof (plan->length));
    memcpy (plan->bracket, searcher_bracket (s, 0), s->brackets * sizeof (*plan->bracket));
    return 0;
}

static int lengthen (struct searcher *s, struct search_plan *plan, int64_t length)
{
    const struct search_scheduler *schedule = searcher_schedule (s);

    if (schedule->lengthen)
        return schedule->lengthen (plan, length);
    if (!searcher_is_full (s)) {
        plan->rungs = ladder_extend (plan->divisor, plan->length, plan->rungs, length);
        return plan->rungs < 0 ? -1 : 0;
    }
    if (s->nearlier == EARLIER_MAX)
        return -1;
    s->earlier[s->nearlier++] = plan->length[0];
    plan->length[0] = length;
    return 0;
}

static int64_t count_planned (const struct search_plan *plan)
{
    int64_t trials = 0;

    for (int i = 0; i < plan->brackets; i++)
        trials += plan->bracket[i].capacity;
    return trials;
}

/* Number of trials that have begun and were not rejected. */
static int64_t trials_begun (const struct bracket *b)
{
    return b->created - b->rejected;
}

/* Without a limit on concurrent trials a bracket also grows in width. */
static void resize (struct bracket *b, int64_t trials, bool wider)
{
    if (wider && trials > b->capacity && b->capacity > 0)
        b->limit = (int64_t)((__int128)b->limit * trials / b->capacity);
    b->capacity = trials;
    b->trials = trials + b->rejected;
}

/* Remove 'excess' trials that have not begun from the last brackets. */
static void cut_unbegun (struct search_plan *plan, int64_t excess)
{
    for (int i = plan->brackets - 1; i >= 0 && excess > 0; i--) {
        struct bracket *b = plan->bracket + i;
        int64_t spare = b->capacity - trials_begun (b);
        if (spare > excess)
            spare = excess;
        resize (b, b->capacity - spare, false);
        excess -= spare;
    }
}

/* Give each bracket its share of the trials, the remainder to the first. */
static void share_trials (struct search_plan *plan, int64_t trials, bool wider)
{
    int64_t all = count_planned (plan), left;

    for (int i = 0; i < plan->brackets; i++) {
        struct bracket *b = plan->bracket + i;
        int64_t part = (int64_t)((__int128)trials * b->capacity / all);
        resize (b, part > trials_begun (b) ? part : trials_begun (b), wider);
    }
    left = trials - count_planned (plan);
    if (left > 0)
        resize (plan->bracket, plan->bracket[0].capacity + left, wider);
    cut_unbegun (plan, -left);
}

static int add_brackets (struct search_plan *plan, const struct search_scheduler *schedule,
                         int64_t more)
{
    int before = plan->brackets;
    int64_t all = count_planned (plan) + more;

    schedule->widen (plan, more);
    for (int i = before; i < plan->brackets; i++) {
        plan->bracket[i].highest = -1;
        plan->bracket[i].capacity = plan->bracket[i].trials;
    }
    return count_planned (plan) == all ? 0 : -1;
}

static int set_trials (struct search_plan *plan, const struct searcher *s, int64_t trials)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    int64_t before = count_planned (plan);

    if (!(searcher_kinds[s->kind].needs & (NEED_MAX_TRIALS | CAN_MAX_TRIALS)))
        return 0;
    if (schedule->widen && trials > before)
        return add_brackets (plan, schedule, trials - before);
    if (schedule->widen)
        cut_unbegun (plan, before - trials);
    else
        share_trials (plan, trials, s->limit == 0);
    return 0;
}

/* ---- the state ---- */

/* Include room for rejected trials, as at the start. */
static int64_t plan_capacity (const struct search_plan *plan)
{
    int64_t trials = 0;

    for (int i = 0; i < plan->brackets; i++) {
        const struct bracket *b = plan->bracket + i;
        trials += b->capacity;
        trials += b->capacity > b->rejected ? b->capacity : b->rejected;
    }
    return trials;
}

/* 's' is the old header, with a new plan. */
static void lay_out_extended (struct searcher *s, struct search_plan *plan,
                              const struct searcher *old)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    int64_t trials = plan_capacity (plan);

    s->rungs = plan->rungs;
    s->brackets = plan->brackets;
    memcpy (s->length, plan->length, sizeof (s->length));
    s->width = s->objectives > 1 ? s->objectives : s->rungs;
    s->trials = 0;
    for (int i = 0; i < plan->brackets; i++)
        s->trials += plan->bracket[i].trials;
    s->capacity = (trials > s->capacity ? trials : s->capacity) + plan->spare;
    s->work_planned = search_work (plan);
    s->size = s->at_brackets;
    search_lay_out (s, plan->bracket, s->at_points != 0);
    search_lay_out_own (s, schedule->regrow ? schedule->regrow (s, plan, old)
                                            : old->size - old->at_schedule);
}

static void move_results (struct searcher *s, const struct searcher *old)
{
    for (int i = 0; i < old->brackets; i++) {
        struct bracket *from = searcher_bracket (old, i);
        for (int rung = from->first; rung < old->rungs; rung++) {
            struct results a, b;
            if (from->rung[rung].results == 0)
                continue;
            a = rung_results ((struct searcher *)old, from, rung);
            b = rung_results (s, searcher_bracket (s, i), rung);
            rung_move (&b, &a);
        }
    }
}

static void move_due (struct searcher *s, const struct searcher *old)
{
    const int32_t *from = searcher_at (old, old->at_due);
    int32_t *to = searcher_at (s, s->at_due);

    for (int64_t i = 0; i < old->due; i++)
        to[i] = from[(old->due_head + i) % old->capacity];
    s->due_head = 0;
}

static void move_points (struct searcher *s, const struct searcher *old)
{
    memcpy (searcher_at (s, s->at_points), searcher_at (old, old->at_points),
            (old->created + old->known) * old->n * sizeof (double));
    for (long i = searcher_first (old); i <= old->created; i++)
        for (int64_t k = 0; k < s->width; k++)
            searcher_values (s, i)[k] = k < old->width ? searcher_values (old, i)[k] : NAN;
}

/* Move an array with one element for each trial. */
static void move_rows (struct searcher *s, int64_t to, const void *from, size_t size)
{
    memcpy (searcher_at (s, to), from, s->created * size);
}

static void move_own (struct searcher *s, const struct searcher *old)
{
    if (searcher_schedule (s)->move)
        searcher_schedule (s)->move (s, old);
    else
        memcpy (searcher_at (s, s->at_schedule), searcher_at (old, old->at_schedule),
                old->size - old->at_schedule);
}

static struct searcher *move_state (const struct searcher *header, const struct search_plan *plan,
                                    const struct searcher *old)
{
    struct searcher *s = calloc (1, header->size);

    if (!s)
        return NULL;
    memcpy (s, old, old->at_brackets);
    memcpy (s, header, sizeof (*s));
    memcpy (searcher_bracket (s, 0), plan->bracket, plan->brackets * sizeof (*plan->bracket));
    if (s->divisor.p > s->divisor.q)
        move_results (s, old);
    move_rows (s, s->at_trials, searcher_at (old, old->at_trials), sizeof (struct search_trial));
    move_due (s, old);
    if (s->at_points)
        move_points (s, old);
    if (s->at_seconds)
        move_rows (s, s->at_seconds, searcher_at (old, old->at_seconds), sizeof (double));
    if (s->at_repeats)
        move_rows (s, s->at_repeats, searcher_at (old, old->at_repeats), sizeof (struct repeat));
    move_own (s, old);
    return s;
}

/* ---- what follows ---- */

/* Full trainings have become longer: completed trials with good values
 * continue; trials that are not complete, or failed, end where they were to
 * end.
 */
static void continue_trials (struct searcher *s)
{
    for (long i = 1; i <= s->created; i++) {
        struct search_trial *t = searcher_trial (s, i);
        if (t->state == TRIAL_PAUSED)
            due_go_on (s, i);
        else if (t->state == TRIAL_DUE) {
            /* it will be trained further */
            s->work_open += s->length[0] - s->earlier[s->nearlier - 1];
        } else if (t->goal == 0)
            t->goal = s->nearlier;
    }
}

static void settle_extended (struct searcher *s, const struct searcher *old)
{
    const struct search_sampler *sampler = searcher_sampler (s);

    if (s->nearlier > old->nearlier)
        continue_trials (s);
    else if (searcher_schedule (s)->extended)
        searcher_schedule (s)->extended (s, old->rungs - 1);
    if (s->trials != old->trials && sampler->extended)
        sampler->extended (s);
    inner_restart_progress (s);
}

static struct searcher *extend_state (const struct searcher *old, struct search_plan *plan,
                                      int64_t trials, int64_t length)
{
    struct searcher header = *old, *s;

    if ((length > plan->length[plan->rungs - 1] && lengthen (&header, plan, length) < 0)
        || (trials > 0 && set_trials (plan, &header, trials) < 0)) {
        errno = EINVAL;
        return NULL;
    }
    lay_out_extended (&header, plan, old);
    if ((s = move_state (&header, plan, old)))
        settle_extended (s, old);
    return s;
}

int searcher_extend (struct searcher **s, long max_trials, int64_t max_length, double max_seconds)
{
    struct searcher *old = *s, *new;
    struct search_plan plan;

    if (max_trials < 0 || max_trials > TRIALS_MAX || !(max_seconds >= 0) || max_length < 0
        || max_length > LENGTH_MAX || (max_length > 0 && max_length < old->length[old->rungs - 1]))
        return inner_refuse ();
    if (plan_open (&plan, old) < 0)
        return -1;
    new = extend_state (old, &plan, max_trials, max_length);
    free (plan.bracket);
    if (!new)
        return -1;
    if (max_seconds > 0)
        new->max_seconds = max_seconds;
    inner_restart_progress (new);
    searcher_destroy (old);
    *s = new;
    return 0;
}
