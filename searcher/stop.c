/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that stop trials on the way: for trainers without checkpoints. */
#include <string.h>

#include "searcher/asha.h"
#include "searcher/rung.h"

static void stop_plan (const struct request *request, struct plan *plan)
{
    plan_flat (plan, request->config, request->config->max_trials);
    if (request->config->max_concurrent == 0)
        plan->bracket[0].limit = request->config->max_trials;
}

/* ---- asha: at each rung all but the best share stop ---- */

struct ladder {
    int64_t rungs;
    int64_t length[RUNGS_MAX];
    struct rung rung[RUNGS_MAX];
    struct ratio divisor;
};

/* After the ladder: of each trial the rungs that it has passed, then of each
 * rung as in rung.h.
 */
static int64_t passed_size (int64_t trials)
{
    return (2 * trials + 7) / 8 * 8;
}

static int64_t ladder_room (const struct request *request,
                            const struct plan *plan)
{
    int64_t trials = plan->bracket[0].trials;
    struct plan ladder = { 0 };

    asha_ladder (&ladder, request->config);
    return (int64_t)sizeof (struct ladder) + passed_size (trials)
           + (ladder.rungs - 1) * trials * RESULT_SIZE;
}

static void ladder_start (struct searcher *s, const struct request *request)
{
    struct ladder *l = searcher_at (s, s->at_schedule);
    struct plan plan = { 0 };

    asha_ladder (&plan, request->config);
    l->rungs = plan.rungs - 1;
    l->divisor = plan.divisor;
    memcpy (l->length, plan.length, sizeof (l->length));
}

static uint8_t *passed (const struct searcher *s, long trial)
{
    return (uint8_t *)searcher_at (s, s->at_schedule) + sizeof (struct ladder)
           + trial - 1;
}

static struct results ladder_results (struct searcher *s, int rung)
{
    struct ladder *l = searcher_at (s, s->at_schedule);
    int64_t n = searcher_bracket (s, 0)->capacity;
    int64_t at = s->at_schedule + (int64_t)sizeof (*l) + passed_size (n)
                 + rung * n * RESULT_SIZE;
    int32_t *trial = searcher_at (s, at + n * (int64_t)sizeof (double));

    return (struct results){
        l->rung + rung, n, searcher_at (s, at), trial, trial + n
    };
}

/* Of n results the best ceil (n / divisor) run on: the first arrivals are
 * among them.
 */
static bool pass_rung (struct searcher *s, long trial, int rung, double value)
{
    const struct ladder *l = searcher_at (s, s->at_schedule);
    struct results r = ladder_results (s, rung);
    int32_t result = r.rung->results;
    int64_t p = l->divisor.p, share;

    if (r.rung->results == r.capacity)
        return true;
    share = ((result + 1) * (int64_t)l->divisor.q + p - 1) / p;
    return rung_add (&r, trial, value, share) == result;
}

static bool
ladder_watch (struct searcher *s, long trial, int64_t length, double value)
{
    const struct ladder *l = searcher_at (s, s->at_schedule);
    uint8_t *rung = passed (s, trial);

    if (!isfinite (value))
        return true;
    for (; *rung < l->rungs && l->length[*rung] <= length; ++*rung)
        if (!pass_rung (s, trial, *rung, value)) {
            *rung = l->rungs;
            return true;
        }
    return false;
}

const struct scheduler schedule_stop = {
    .check = asha_check,
    .plan = stop_plan,
    .room = ladder_room,
    .start = ladder_start,
    .watch = ladder_watch,
};

/* ---- the median rule ---- */

/* D. Golovin and others, KDD 2017: a trial stops if its best value so far is
 * worse than the median of the averages, up to the same length, of the trials
 * that have ended and came so far.  It is asked at every report.
 */
enum { SLOTS_MAX = 128, SLOTS_MANY = 32, MANY = 1000, ENDED_MIN = 3 };

struct medians {
    int64_t slots;      /* of the length, in which averages are kept */
    int64_t min_length; /* no trial stops before */
};

/* After it, of each trial this and a float a slot: NaN, as not reached. */
struct course {
    double sum, best;
    int64_t count, length; /* of reports; of the last one */
};

static int64_t slots_of (const struct search_config *config)
{
    int64_t most = config->max_trials > MANY ? SLOTS_MANY : SLOTS_MAX;

    return config->max_length < most ? config->max_length : most;
}

static int64_t course_size (int64_t slots)
{
    return (int64_t)sizeof (struct course)
           + (slots * (int64_t)sizeof (float) + 7) / 8 * 8;
}

/* Twice the trials: rejected ones are replaced. */
static int64_t median_room (const struct request *request,
                            const struct plan *plan)
{
    return (int64_t)sizeof (struct medians)
           + 2 * plan->bracket[0].trials
                 * course_size (slots_of (request->config));
}

static struct course *course_of (const struct searcher *s, long trial)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    return searcher_at (s,
                        s->at_schedule + (int64_t)sizeof (*m)
                            + (trial - 1) * course_size (m->slots));
}

static float *averages (struct course *c)
{
    return (float *)(c + 1);
}

static void median_start (struct searcher *s, const struct request *request)
{
    struct medians *m = searcher_at (s, s->at_schedule);

    m->slots = slots_of (request->config);
    m->min_length = request->config->min_length > 0
                        ? request->config->min_length
                        : (request->config->max_length + 19) / 20;
    for (long i = 1; i <= s->capacity; i++)
        for (int64_t k = 0; k < m->slots; k++)
            averages (course_of (s, i))[k] = NAN;
}

static int64_t slot_at (const struct searcher *s, int64_t length)
{
    const struct medians *m = searcher_at (s, s->at_schedule);

    return (int64_t)((__int128)(length - 1) * m->slots / s->length[0]);
}

/* Trials that have ended, came to the slot, and have an average below 'limit',
 * or one that is equal to it if 'equal'.
 */
static int64_t
count_below (const struct searcher *s, int64_t slot, double limit, bool equal)
{
    int64_t n = 0;

    for (long i = 1; i <= s->created; i++) {
        float a = averages (course_of (s, i))[slot];
        n += searcher_trial (s, i)->state == TRIAL_ENDED
             && (a < limit || (equal && a == limit));
    }
    return n;
}

/* The median is below 'best' if more than half of the averages are, or if
 * just half are and the mean of the two in the middle is.
 */
static bool
worse_than_median (const struct searcher *s, int64_t slot, float best)
{
    int64_t all = count_below (s, slot, INFINITY, true);
    int64_t below = count_below (s, slot, best, false);
    double left = -INFINITY, right = INFINITY;

    if (all < ENDED_MIN || 2 * below != all)
        return all >= ENDED_MIN && 2 * below > all;
    for (long i = 1; i <= s->created; i++) {
        float a = averages (course_of (s, i))[slot];
        if (searcher_trial (s, i)->state != TRIAL_ENDED)
            continue;
        if (a < best && a > left)
            left = a;
        if (a >= best && a < right)
            right = a;
    }
    return left + right < 2 * (double)best;
}

/* What was skipped has the average of the reports before it, at the start that
 * of the first one.
 */
static void fill_slots (float *average, int64_t slot, double now)
{
    int64_t last = slot - 1;

    while (last >= 0 && isnan (average[last]))
        last--;
    for (int64_t i = last + 1; i < slot; i++)
        average[i] = last < 0 ? now : average[last];
    average[slot] = now;
}

static bool
median_watch (struct searcher *s, long trial, int64_t length, double value)
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
    return length >= m->min_length
           && worse_than_median (s, slot_at (s, length), c->best);
}

const struct scheduler schedule_median = {
    .plan = stop_plan,
    .room = median_room,
    .start = median_start,
    .watch = median_watch,
};
