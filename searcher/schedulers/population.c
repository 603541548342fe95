/* SPDX-License-Identifier: Apache-2.0 */
/* Population based training (M. Jaderberg and others, arXiv 1711.09846). */
#include <string.h>

#include "searcher/numeric/rng.h"
#include "searcher/schedulers/schedulers.h"
#include "searcher/state/state.h"

/* A member of the population is trained one generation at a time.  If it is
 * bad, or among the worst quarter when its next generation is due, it ends, and
 * a fresh trial takes its place: it starts from the checkpoint of one of the
 * best quarter at that rung, with that trial's hyperparameters, some of them
 * changed, and, as in the paper, that trial's results until it has its own.
 */
enum { POPULATION = 16, GENERATIONS = 10, QUARTER = 4, TRIES = 50 };

static const double resampled = 0.25;

/* The place that a trial left at a rung, to be filled by a clone. */
struct vacancy {
    int32_t winner, rung, loser;
};

struct crowd {
    int64_t members, open; /* vacancies that wait for a clone, a list */
};

static int64_t members_of (const struct search_config *config)
{
    return config->population > 0 ? config->population : POPULATION;
}

static int64_t generation (const struct search_config *config)
{
    return config->min_length > 0 ? config->min_length
                                  : (config->max_length + GENERATIONS - 1) / GENERATIONS;
}

static const char *population_check (const struct search_request *request, int *param)
{
    const struct search_config *config = request->config;

    (void)param;
    if (config->population != 0 && config->population < QUARTER)
        return "population is below 4";
    if (generation (config) > config->max_length)
        return "a generation (min_length) is longer than max_length";
    if ((config->max_length - 1) / generation (config) + 1 > RUNGS_MAX)
        return "more than 32 generations: min_length is too small";
    return NULL;
}

static void population_plan (const struct search_request *request, struct search_plan *plan)
{
    const struct search_config *config = request->config;
    int64_t length = generation (config);

    plan_flat (plan, config, members_of (config));
    plan->whole = true;
    plan->rungs = (config->max_length - 1) / length + 1;
    for (int i = 0; i < plan->rungs; i++)
        plan->length[i] = i < plan->rungs - 1 ? (i + 1) * length : config->max_length;
    plan->spare = plan->bracket[0].trials * plan->rungs;
}

static int64_t population_room (const struct search_request *request,
                                const struct search_plan *plan)
{
    (void)request;
    return (int64_t)sizeof (struct crowd)
           + plan->bracket[0].trials * (int64_t)sizeof (struct vacancy);
}

static void population_start (struct searcher *s, const struct search_request *request)
{
    struct crowd *c = searcher_at (s, s->at_schedule);

    c->members = members_of (request->config);
}

static struct vacancy *vacancies (const struct searcher *s)
{
    struct crowd *c = searcher_at (s, s->at_schedule);

    return (struct vacancy *)(c + 1);
}

/* ---- exploit ---- */

static bool is_member (const struct searcher *s, long trial)
{
    const struct search_trial *t = searcher_trial (s, trial);

    return t->state != TRIAL_ENDED && t->state != TRIAL_FAILED;
}

/* The latest rung, 'rung' at most, at which both have a result; -1 if there is none. */
static int latest_common_rung (const double *a, const double *b, int rung)
{
    while (rung >= 0 && !(isfinite (a[rung]) && isfinite (b[rung])))
        rung--;
    return rung;
}

/* It reached the rung itself, with a good value. */
static bool has_come (const struct searcher *s, long trial, int rung)
{
    return searcher_trial (s, trial)->own <= rung && isfinite (searcher_values (s, trial)[rung]);
}

/* Whether it is among the worst quarter of the population: of the trials that
 * reached the rung, even if a clone has their place now, and of those that have
 * not reached it yet, which are compared by the last rung at which both have a
 * result.
 */
static bool is_loser (const struct searcher *s, long trial, int rung)
{
    const double *mine = searcher_values (s, trial);
    int64_t members = 1, better = 0;

    for (long i = 1; i <= s->created; i++) {
        const double *other = searcher_values (s, i);
        int at = -1;
        if (i != trial && has_come (s, i, rung))
            at = rung;
        else if (is_member (s, i) && isnan (other[rung]))
            at = latest_common_rung (mine, other, rung);
        members += at >= 0;
        better += at >= 0 && other[at] < mine[at];
    }
    return members >= QUARTER && better >= members - members / QUARTER;
}

/* Whether it is better than the loser, among the best quarter of those that
 * reached the rung, and has a checkpoint of its own there.
 */
static bool is_winner (const struct searcher *s, long trial, long loser, int rung)
{
    double value = searcher_values (s, trial)[rung];
    int64_t came = 0, better = 0;

    if (!is_member (s, trial) || !has_come (s, trial, rung)
        || !(value < searcher_values (s, loser)[rung]))
        return false;
    for (long i = 1; i <= s->created; i++)
        if (has_come (s, i, rung)) {
            came++;
            better += searcher_values (s, i)[rung] < value;
        }
    return better == 0 || better < came / QUARTER;
}

/* Choose a winner; 0 if there is none. */
static long choose_winner (const struct searcher *s, long loser, int rung)
{
    int64_t winners = 0, pick;
    long i = 0;

    for (long k = 1; k <= s->created; k++)
        winners += k != loser && is_winner (s, k, loser, rung);
    if (winners == 0)
        return 0;
    pick = rng_below (s->seed, loser, rng_key ("pbt winner"), winners);
    do
        i++;
    while (i == loser || !is_winner (s, i, loser, rung) || pick-- > 0);
    return i;
}

static void leave_vacancy (struct searcher *s, long winner, long loser)
{
    struct crowd *c = searcher_at (s, s->at_schedule);
    struct search_trial *t = searcher_trial (s, loser);

    vacancies (s)[c->open++] = (struct vacancy){ winner, t->rung, loser };
    t->replaced = true;
    searcher_bracket (s, 0)->trials++;
    s->trials++;
}

static void take_vacancy (struct searcher *s, int64_t i)
{
    struct crowd *c = searcher_at (s, s->at_schedule);
    struct vacancy *vacancy = vacancies (s) + i;

    memmove (vacancy, vacancy + 1, (--c->open - i) * sizeof (*vacancy));
    vacancies (s)[c->open] = (struct vacancy){ 0 };
}

/* Fill the places of bad trials for which there was no winner. */
static void fill_places (struct searcher *s, int rung)
{
    for (long i = 1; i <= s->created; i++) {
        const struct search_trial *t = searcher_trial (s, i);
        long winner = 0;
        if (!is_member (s, i) && !t->replaced && t->rung == rung
            && !isfinite (searcher_values (s, i)[rung]))
            winner = choose_winner (s, i, rung);
        if (winner)
            leave_vacancy (s, winner, i);
    }
}

static void population_ended (struct searcher *s, long trial, double value)
{
    struct search_trial *t = searcher_trial (s, trial);
    int rung = t->rung;
    long winner = 0;

    if (!isfinite (value))
        winner = choose_winner (s, trial, rung);
    if (winner) {
        if (t->state == TRIAL_PAUSED)
            t->state = TRIAL_ENDED;
        if (!t->replaced)
            leave_vacancy (s, winner, trial);
    } else if (t->state == TRIAL_PAUSED)
        due_promote (s, trial);
    if (isfinite (value))
        fill_places (s, rung);
}

/* ---- explore ---- */

/* Change by a fifth up or down, or to a neighbour; sometimes to a random value. */
static double perturb_value (const struct dim *d, double x, struct rng *r, double anywhere)
{
    double factor = rng_next (r) < 0.5 ? 0.8 : 1.2;

    if (isnan (x) || rng_next (r) < resampled)
        return space_at (d, anywhere);
    if (d->type == PARAM_CATEGORICAL)
        return space_outer (d, x + (factor < 1 ? -1 : 1));
    /* at least one step */
    if (d->step > 0 && fabs (x * factor - x) < d->step)
        return space_outer (d, space_inner (d, x + (factor < 1 ? -d->step : d->step)));
    return space_outer (d, space_inner (d, x * factor));
}

static void explore (const struct searcher *s, long winner, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);
    struct rng r = { s->seed, trial, rng_key ("pbt explore"), 0 };
    const double *from = searcher_point (s, winner);

    for (int try = 0; try < TRIES; try++) {
        for (int64_t i = 0; i < s->n; i++)
            x[i] = perturb_value (dims + i, from[i], &r, rng_next (&r));
        point_mask (s, x);
        if (point_allowed (s, x))
            return;
    }
    if (s->n > 0)
        memcpy (x, from, s->n * sizeof (*x));
}

static bool population_clone (const struct searcher *s, struct search_op *op, double *x)
{
    const struct crowd *c = searcher_at (s, s->at_schedule);
    const struct bracket *b = searcher_bracket (s, 0);
    const struct vacancy *vacancy = vacancies (s);

    /* members that have not begun come first */
    if (c->open == 0 || b->created + c->open < b->trials)
        return false;
    op->from = vacancy->winner;
    op->from_length = s->length[vacancy->rung];
    op->length = s->length[vacancy->rung + 1];
    explore (s, vacancy->winner, op->trial, x);
    return true;
}

static void population_relieve (const struct searcher *s, struct search_op *op, double *x)
{
    long loser = op->trial;
    int rung = searcher_trial (s, loser)->rung - 1;
    long winner = is_loser (s, loser, rung) ? choose_winner (s, loser, rung) : 0;

    if (winner == 0)
        return;
    op->trial = s->created + 1;
    op->fresh = true;
    op->from = winner;
    op->from_length = s->length[rung];
    explore (s, winner, op->trial, x);
}

/* The first trial that is due ends, and a clone takes its place. */
static bool relieved (struct searcher *s, const struct search_op *op)
{
    long loser = s->due > 0 ? *due_trial (s, 0) : 0;
    struct search_trial *t;
    int rung;

    if (loser == 0)
        return false;
    t = searcher_trial (s, loser);
    rung = t->rung - 1;
    if (op->length != s->length[rung + 1] || op->from_length != s->length[rung] || op->from < 1
        || op->from > s->created || !is_winner (s, op->from, loser, rung))
        return false;
    due_demote (s, loser);
    t->state = TRIAL_ENDED;
    t->replaced = true;
    searcher_bracket (s, 0)->trials++;
    s->trials++;
    return true;
}

/* Vacancies are reserved for clones. */
static bool population_begun (struct searcher *s, const struct search_op *op)
{
    const struct bracket *b = searcher_bracket (s, 0);
    struct crowd *c = searcher_at (s, s->at_schedule);
    struct vacancy *vacancy = vacancies (s);
    int64_t i = 0;

    if (op->from == 0)
        return op->length == s->length[0] && b->created + c->open < b->trials;
    while (i < c->open
           && (vacancy[i].winner != op->from || s->length[vacancy[i].rung] != op->from_length
               || s->length[vacancy[i].rung + 1] != op->length))
        i++;
    if (i == c->open)
        return relieved (s, op);
    take_vacancy (s, i);
    return true;
}

/* If its clone has begun already, there is one more member than the population,
 * who leaves no vacancy.
 */
static void population_revived (struct searcher *s, long trial)
{
    struct crowd *c = searcher_at (s, s->at_schedule);

    for (int64_t i = 0; i < c->open; i++)
        if (vacancies (s)[i].loser == trial) {
            take_vacancy (s, i);
            searcher_trial (s, trial)->replaced = false;
            searcher_bracket (s, 0)->trials--;
            s->trials--;
            return;
        }
}

/* ---- more generations ---- */

static int population_lengthen (struct search_plan *plan, int64_t length)
{
    int before = plan->rungs, room = RUNGS_MAX - before;
    int64_t *rung = plan->length, more = length - rung[before - 1], step;

    if (room == 0)
        return -1;
    step = (more + room - 1) / room;
    if (step < rung[0])
        step = rung[0];
    for (; more > 0; more -= step, plan->rungs++)
        rung[plan->rungs] = more > step ? rung[plan->rungs - 1] + step : length;
    plan->spare = plan->bracket[0].capacity * (plan->rungs - before);
    return 0;
}

/* Judge the former last generation like the others. */
static void population_extended (struct searcher *s, int top)
{
    if (top == s->rungs - 1)
        return;
    for (long i = 1; i <= s->created; i++) {
        const struct search_trial *t = searcher_trial (s, i);
        if (t->rung == top && t->state != TRIAL_RUNNING && t->state != TRIAL_DUE && !t->replaced)
            population_ended (s, i, searcher_values (s, i)[top]);
    }
}

const struct search_scheduler schedule_population = {
    .check = population_check,
    .plan = population_plan,
    .keeps = true,
    .room = population_room,
    .start = population_start,
    .ended = population_ended,
    .clone = population_clone,
    .relieve = population_relieve,
    .begun = population_begun,
    .revived = population_revived,
    .lengthen = population_lengthen,
    .extended = population_extended,
};
