/* SPDX-License-Identifier: Apache-2.0 */
/* Early stopping for trainers without checkpoints: stopping ASHA, median rule. */
#include <string.h>

#include "searcher/schedulers/asha.h"
#include "searcher/schedulers/rung.h"
#include "searcher/schedulers/schedulers.h"
#include "searcher/state/state.h"

static void stop_plan (const struct search_request *request, struct search_plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
    if (request->config->max_concurrent == 0)
        plan->bracket[0].limit = request->config->max_trials;
}

/* The brackets of adaptive_asha, with full trainings. */
static void adaptive_stop_plan (const struct search_request *request, struct search_plan *plan)
{
    adaptive_plan (request, plan);
    plan->divisor = (struct ratio){ 1, 1 };
    plan->rungs = 1;
    plan->length[0] = request->config->max_length;
    for (int i = 0; i < plan->brackets; i++)
        plan->bracket[i].first = 0;
}

/* ---- asha: at each rung all but the best share stop ---- */

struct ladder {
    int64_t rungs;
    int64_t length[RUNGS_MAX];
    struct ratio divisor;
};

/* Behind it, for each bracket: trials are compared from rung 'first' on. */
struct steps {
    int64_t first;
    struct rung rung[RUNGS_MAX];
};

/* Behind these: for each trial (rejected ones, too) the rungs that it has
 * passed, then for each rung of each bracket what rung.h keeps.
 */
static int64_t passed_size (int64_t capacity)
{
    return (capacity + 7) / 8 * 8;
}

static int64_t ladder_size (int64_t rungs, int64_t capacity, const struct search_plan *plan)
{
    int64_t size = (int64_t)sizeof (struct ladder) + passed_size (capacity)
                   + plan->brackets * (int64_t)sizeof (struct steps);

    for (int i = 0; i < plan->brackets; i++)
        size += rungs * plan->bracket[i].capacity * RESULT_SIZE;
    return size;
}

static int64_t ladder_room (const struct search_request *request, const struct search_plan *plan)
{
    struct search_plan ladder = { 0 };
    int64_t trials = 0;

    asha_ladder (&ladder, request->config);
    for (int i = 0; i < plan->brackets; i++)
        trials += plan->bracket[i].trials;
    return ladder_size (ladder.rungs - 1, 2 * trials, plan);
}

static struct steps *bracket_steps (const struct searcher *s, int bracket)
{
    struct ladder *l = searcher_at (s, s->at_schedule);

    return (struct steps *)(l + 1) + bracket;
}

static void set_ladder (struct searcher *s, const struct search_plan *plan)
{
    struct ladder *l = searcher_at (s, s->at_schedule);

    l->rungs = plan->rungs - 1;
    l->divisor = plan->divisor;
    memcpy (l->length, plan->length, sizeof (l->length));
    for (int i = 0; i < s->brackets; i++)
        bracket_steps (s, i)->first = plan->bracket[i].first;
}

static void ladder_start (struct searcher *s, const struct search_request *request)
{
    struct bracket bracket = { 0 };
    struct search_plan plan = { .bracket = &bracket };

    asha_plan (request, &plan);
    set_ladder (s, &plan);
}

static void adaptive_stop_start (struct searcher *s, const struct search_request *request)
{
    struct bracket brackets[RUNGS_MAX] = { 0 };
    struct search_plan plan = { .bracket = brackets };

    adaptive_plan (request, &plan);
    set_ladder (s, &plan);
}

static uint8_t *passed_slots (const struct searcher *s, long trial)
{
    return (uint8_t *)bracket_steps (s, (int)s->brackets) + trial - 1;
}

static struct results ladder_results (struct searcher *s, int bracket, int rung)
{
    const struct ladder *l = searcher_at (s, s->at_schedule);
    int64_t n = searcher_bracket (s, bracket)->capacity, before = 0, at;
    int32_t *trial;

    for (int i = 0; i < bracket; i++)
        before += searcher_bracket (s, i)->capacity;
    at = (char *)passed_slots (s, 1) - (char *)s + passed_size (s->capacity)
         + (l->rungs * before + rung * n) * RESULT_SIZE;
    trial = searcher_at (s, at + n * (int64_t)sizeof (double));
    return (struct results){ bracket_steps (s, bracket)->rung + rung, n, searcher_at (s, at), trial,
                             trial + n };
}

/* Number of n results that continue, including the first to arrive. */
static int64_t kept_share (struct ratio divisor, int64_t n)
{
    int64_t share = ratio_share (divisor, n);

    return share > 1 ? share : 1;
}

static bool pass_rung (struct searcher *s, long trial, int rung, double value)
{
    const struct ladder *l = searcher_at (s, s->at_schedule);
    struct results r = ladder_results (s, searcher_trial (s, trial)->bracket, rung);
    int32_t result = r.rung->results;

    if (r.rung->results == r.capacity)
        return true;
    return rung_add (&r, trial, value, kept_share (l->divisor, result + 1)) == result;
}

static bool ladder_watch (struct searcher *s, long trial, int64_t length, double value)
{
    const struct ladder *l = searcher_at (s, s->at_schedule);
    int64_t first = bracket_steps (s, searcher_trial (s, trial)->bracket)->first;
    uint8_t *rung = passed_slots (s, trial);

    if (!isfinite (value))
        return true;
    if (*rung < first)
        *rung = (uint8_t)first;
    for (; *rung < l->rungs && l->length[*rung] <= length; ++*rung)
        if (!pass_rung (s, trial, *rung, value)) {
            *rung = l->rungs;
            return true;
        }
    return false;
}

static void ladder_forget (struct searcher *s, long trial)
{
    const struct ladder *l = searcher_at (s, s->at_schedule);

    for (int rung = 0; rung < l->rungs; rung++) {
        struct results r = ladder_results (s, searcher_trial (s, trial)->bracket, rung);
        rung_remove (&r, trial);
        rung_resize (&r, kept_share (l->divisor, r.rung->results));
    }
}

/* The ladder up to the current length of 's'; the one before, if there is no room. */
static struct ladder ladder_of (const struct searcher *s, const struct searcher *old)
{
    struct ladder l = *(struct ladder *)searcher_at (old, old->at_schedule);
    int n = ladder_extend (l.divisor, l.length, l.rungs + 1, s->length[0]);

    if (n > 0)
        l.rungs = n - 1;
    return l;
}

static int64_t ladder_regrow (const struct searcher *s, const struct search_plan *plan,
                              const struct searcher *old)
{
    return ladder_size (ladder_of (s, old).rungs, s->capacity, plan);
}

static void ladder_move (struct searcher *s, const struct searcher *old)
{
    struct ladder *l = searcher_at (s, s->at_schedule);
    const struct ladder *before = searcher_at (old, old->at_schedule);

    *l = ladder_of (s, old);
    memcpy (passed_slots (s, 1), passed_slots (old, 1), old->created);
    for (int i = 0; i < old->brackets; i++) {
        *bracket_steps (s, i) = *bracket_steps (old, i);
        for (int rung = 0; rung < before->rungs; rung++) {
            struct results from = ladder_results ((struct searcher *)old, i, rung);
            struct results to = ladder_results (s, i, rung);
            rung_move (&to, &from);
        }
    }
}

const struct search_scheduler schedule_stop = {
    .check = asha_check,
    .plan = stop_plan,
    .room = ladder_room,
    .start = ladder_start,
    .watch = ladder_watch,
    .forget = ladder_forget,
    .regrow = ladder_regrow,
    .move = ladder_move,
};

const struct search_scheduler schedule_adaptive_stop = {
    .check = adaptive_check,
    .plan = adaptive_stop_plan,
    .room = ladder_room,
    .start = adaptive_stop_start,
    .watch = ladder_watch,
    .forget = ladder_forget,
    .regrow = ladder_regrow,
    .move = ladder_move,
};

/* ---- the median rule ---- */

/* D. Golovin and others, KDD 2017: a trial stops if its best value so far is
 * worse than the median of the averages, up to the same length, of the ended
 * trials that reached it.  It is checked at every report.
 */
enum { SLOTS_MAX = 128, SLOTS_MANY = 32, MANY = 1000, ENDED_MIN = 3 };

struct medians {
    int64_t slots;      /* of the length, for which averages are kept */
    int64_t min_length; /* no trial stops earlier */
};

/* Behind it, for each trial this struct and a float for each slot: NaN until it is reached. */
struct course {
    double sum, best;
    int64_t count, length; /* of reports; of the last one */
};

static int64_t slots_of (int64_t trials, int64_t length)
{
    int64_t most = trials > MANY ? SLOTS_MANY : SLOTS_MAX;

    return length < most ? length : most;
}

static int64_t course_size (int64_t slots)
{
    return (int64_t)sizeof (struct course) + (slots * (int64_t)sizeof (float) + 7) / 8 * 8;
}

static int64_t median_size (int64_t slots, int64_t capacity)
{
    return (int64_t)sizeof (struct medians) + capacity * course_size (slots);
}

/* Twice the trials: rejected ones are replaced. */
static int64_t median_room (const struct search_request *request, const struct search_plan *plan)
{
    int64_t trials = plan->bracket[0].trials;

    return median_size (slots_of (trials, request->config->max_length), 2 * trials);
}

static struct course *course_of (const struct searcher *s, long trial)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    return searcher_at (s, s->at_schedule + (int64_t)sizeof (*m)
                               + (trial - 1) * course_size (m->slots));
}

static float *averages (struct course *c)
{
    return (float *)(c + 1);
}

static void clear_slots (struct searcher *s, long first)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    for (long i = first; i <= s->capacity; i++)
        for (int64_t k = 0; k < m->slots; k++)
            averages (course_of (s, i))[k] = NAN;
}

static void median_start (struct searcher *s, const struct search_request *request)
{
    struct medians *m = searcher_at (s, s->at_schedule);

    m->slots = slots_of (request->config->max_trials, s->length[0]);
    m->min_length = request->config->min_length > 0 ? request->config->min_length
                                                    : (request->config->max_length + 19) / 20;
    clear_slots (s, 1);
}

static void median_forget (struct searcher *s, long trial)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    for (int64_t k = 0; k < m->slots; k++)
        averages (course_of (s, trial))[k] = NAN;
}

static int64_t slot_at (const struct searcher *s, int64_t length)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    return (int64_t)((__int128)(length - 1) * m->slots / s->length[0]);
}

/* It is not being trained, or is due: then it has ended at an earlier length. */
static bool is_not_training (const struct searcher *s, long trial)
{
    return searcher_trial (s, trial)->state != TRIAL_RUNNING;
}

/* Number of ended trials that reached the slot with an average below 'limit',
 * or equal to it if 'equal'.
 */
static int64_t count_worse (const struct searcher *s, int64_t slot, double limit, bool equal)
{
    int64_t n = 0;

    for (long i = 1; i <= s->created; i++) {
        float a = averages (course_of (s, i))[slot];
        n += is_not_training (s, i) && (a < limit || (equal && a == limit));
    }
    return n;
}

/* The median is below 'best' if more than half of the averages are, or if
 * exactly half are and the mean of the two in the middle is.
 */
static bool worse_than_median (const struct searcher *s, int64_t slot, float best)
{
    int64_t all = count_worse (s, slot, INFINITY, true);
    int64_t below = count_worse (s, slot, best, false);
    double left = -INFINITY, right = INFINITY;

    if (all < ENDED_MIN || 2 * below != all)
        return all >= ENDED_MIN && 2 * below > all;
    for (long i = 1; i <= s->created; i++) {
        float a = averages (course_of (s, i))[slot];
        if (!is_not_training (s, i))
            continue;
        if (a < best && a > left)
            left = a;
        if (a >= best && a < right)
            right = a;
    }
    return left + right < 2 * (double)best;
}

/* Skipped slots get the average of the reports before them; at the start, the first one. */
static void fill_slots (float *average, int64_t slot, double now)
{
    int64_t last = slot - 1;

    while (last >= 0 && isnan (average[last]))
        last--;
    for (int64_t i = last + 1; i < slot; i++)
        average[i] = last < 0 ? now : average[last];
    average[slot] = now;
}

static bool median_watch (struct searcher *s, long trial, int64_t length, double value)
{
    const struct medians *m = searcher_at (s, s->at_schedule);
    struct course *c = course_of (s, trial);
    int64_t slot = slot_at (s, length);

    if (!isfinite (value))
        return true;
    if (length <= c->length) /* a duplicate */
        return false;
    c->length = length;
    c->best = c->count == 0 || value < c->best ? value : c->best;
    c->sum += value;
    c->count++;
    fill_slots (averages (c), slot, c->sum / c->count);
    return length >= m->min_length && worse_than_median (s, slot_at (s, length), c->best);
}

/* ---- more trials, or longer ones ---- */

static int64_t median_regrow (const struct searcher *s, const struct search_plan *plan,
                              const struct searcher *old)
{
    const struct medians *m = searcher_at (old, old->at_schedule);
    int64_t slots = s->length[0] == old->length[0]
                        ? m->slots
                        : slots_of (plan->bracket[0].capacity, s->length[0]);

    return median_size (slots, s->capacity);
}

/* Start of a slot. */
static int64_t slot_start (const struct searcher *s, int64_t slot)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    return (int64_t)(((__int128)slot * s->length[0] + m->slots - 1) / m->slots) + 1;
}

/* The last average in the part of the length that the slot covers. */
static float average_of (const struct searcher *s, const struct searcher *old, const float *before,
                         int64_t slot)
{
    int64_t first = slot_start (s, slot), last = slot_start (s, slot + 1) - 1;
    int64_t k;

    if (first > old->length[0])
        return NAN;
    if (last > old->length[0])
        last = old->length[0];
    k = slot_at (old, last);
    while (isnan (before[k]) && k > slot_at (old, first))
        k--;
    return before[k];
}

static void median_move (struct searcher *s, const struct searcher *old)
{
    struct medians *m = searcher_at (s, s->at_schedule);

    *m = *(struct medians *)searcher_at (old, old->at_schedule);
    if (s->length[0] != old->length[0])
        m->slots = slots_of (searcher_bracket (s, 0)->capacity, s->length[0]);
    for (long i = 1; i <= old->created; i++) {
        struct course *to = course_of (s, i), *from = course_of (old, i);
        *to = *from;
        for (int64_t k = 0; k < m->slots; k++)
            averages (to)[k] = average_of (s, old, averages (from), k);
    }
    clear_slots (s, old->created + 1);
}

const struct search_scheduler schedule_median = {
    .plan = stop_plan,
    .room = median_room,
    .start = median_start,
    .watch = median_watch,
    .forget = median_forget,
    .regrow = median_regrow,
    .move = median_move,
};
