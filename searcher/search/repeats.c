/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated trials of a point, whose mean is its value. */
#include <string.h>

#include "searcher/search/events.h"

/* With r repeats, the trials (i - 1) r + 1 .. i r train the point of the
 * method's trial i, and its value is the mean of theirs.  The method sees only
 * its own trials.
 */
static struct repeat *repeat_of (const struct searcher *s, long inner)
{
    return (struct repeat *)searcher_at (s, s->at_repeats) + inner - 1;
}

static long inner_of (const struct searcher *s, long trial)
{
    return (trial - 1) / s->repeats + 1;
}

/* The first trial of the method, from 'inner' on, whose repeats have not all
 * begun; 0 if there is none.
 */
static long half_begun (const struct searcher *s, long inner)
{
    for (long i = inner; i <= s->created && s->halves > 0; i++)
        if (searcher_trial (s, i)->state == TRIAL_RUNNING && repeat_of (s, i)->begun < s->repeats)
            return i;
    return 0;
}

static bool is_first_repeat (const struct searcher *s, long inner)
{
    return searcher_start (s, searcher_trial (s, inner)) == 0;
}

static void ask_repeat (const struct searcher *s, long inner, struct search_op *op, double *x)
{
    *op = (struct search_op){
        .trial = (inner - 1) * s->repeats + 1 + repeat_of (s, inner)->begun,
        .fresh = is_first_repeat (s, inner),
        .length = searcher_goal (s, searcher_trial (s, inner)),
    };
    if (op->fresh && s->n > 0)
        memcpy (x, searcher_point (s, inner), s->n * sizeof (*x));
}

enum search_answer searcher_ask (const struct searcher *s, struct search_op *op, double *x)
{
    enum search_answer answer;
    long inner;

    if (s->repeats == 1)
        return inner_ask (s, op, x);
    if (s->limit > 0 && s->outer >= s->limit)
        return SEARCH_WAIT;
    if ((inner = s->half)) {
        ask_repeat (s, inner, op, x);
        return SEARCH_RUN;
    }
    answer = inner_ask (s, op, x);
    op->trial = (op->trial - 1) * s->repeats + 1;
    return answer;
}

static int begin_first (struct searcher *s, const struct search_op *op, const double *x, long inner)
{
    struct search_op first = *op;

    first.trial = inner;
    if (inner_begin (s, &first, x) < 0)
        return -1;
    *repeat_of (s, inner) = (struct repeat){ .begun = 1 };
    s->outer++;
    if (s->halves++ == 0 || inner < s->half)
        s->half = inner;
    return 0;
}

/* Whether the method's trial is being trained, to this length (0: to any). */
static bool is_inner_running (const struct searcher *s, long inner, int64_t length)
{
    const struct search_trial *t;

    if (inner < 1 || inner > s->created)
        return false;
    t = searcher_trial (s, inner);
    return t->state == TRIAL_RUNNING && (length == 0 || length == searcher_goal (s, t));
}

int searcher_begin (struct searcher *s, const struct search_op *op, const double *x)
{
    long inner;

    if (s->repeats == 1)
        return inner_begin (s, op, x);
    if (op->trial < 1 || op->length < 1)
        return inner_refuse ();
    inner = inner_of (s, op->trial);
    if ((op->trial - 1) % s->repeats == 0)
        return begin_first (s, op, x, inner);
    if (!is_inner_running (s, inner, op->length)
        || (op->trial - 1) % s->repeats != repeat_of (s, inner)->begun
        || op->fresh != is_first_repeat (s, inner))
        return inner_refuse ();
    s->outer++;
    if (++repeat_of (s, inner)->begun < s->repeats)
        return 0;
    s->halves--;
    if (s->half == inner)
        s->half = half_begun (s, inner + 1);
    return 0;
}

enum repeat_outcome { OBSERVED, FAILED, REJECTED };

/* All repeats have a result: observe the mean; a bad one makes it bad. */
static int observe_mean (struct searcher *s, long inner)
{
    const struct repeat *r = repeat_of (s, inner);
    double mean[OBJECTIVES_MAX];

    if (r->rejected || r->failed)
        return inner_exit (s, inner, r->rejected);
    for (int64_t k = 0; k < s->objectives; k++)
        mean[k] = r->sum[k] / s->repeats;
    return inner_observe (s, inner, searcher_goal (s, searcher_trial (s, inner)), mean);
}

static int observe_repeat (struct searcher *s, long trial, int64_t length, const double *values,
                           enum repeat_outcome outcome)
{
    long inner = trial < 1 ? 0 : inner_of (s, trial);
    struct repeat *r;
    int64_t place;

    if (!is_inner_running (s, inner, length))
        return inner_refuse ();
    place = (trial - 1) % s->repeats;
    r = repeat_of (s, inner);
    if (place >= r->begun || r->ended >> place & 1)
        return inner_refuse ();
    r->ended |= UINT64_C (1) << place;
    for (int64_t k = 0; outcome == OBSERVED && k < s->objectives; k++)
        r->sum[k] += values[k];
    if (outcome == FAILED)
        r->failed |= UINT64_C (1) << place;
    if (outcome == REJECTED)
        r->rejected = true;
    s->outer--;
    if (r->ended != UINT64_MAX >> (64 - s->repeats))
        return 0;
    return observe_mean (s, inner);
}

int searcher_observe (struct searcher *s, long trial, int64_t length, const double *values)
{
    if (s->repeats == 1)
        return inner_observe (s, trial, length, values);
    if (length < 1)
        return inner_refuse ();
    return observe_repeat (s, trial, length, values, OBSERVED);
}

int searcher_exit (struct searcher *s, long trial)
{
    if (s->repeats == 1)
        return inner_exit (s, trial, false);
    return observe_repeat (s, trial, 0, NULL, FAILED);
}

int searcher_reject (struct searcher *s, long trial)
{
    if (s->repeats == 1)
        return inner_exit (s, trial, true);
    return observe_repeat (s, trial, 0, NULL, REJECTED);
}

int searcher_revive (struct searcher *s, long trial)
{
    long inner = trial < 1 ? 0 : inner_of (s, trial);
    struct repeat *r;
    uint64_t bit;

    if (s->repeats == 1)
        return inner_revive (s, trial);
    if (inner < 1 || inner > s->created)
        return inner_refuse ();
    r = repeat_of (s, inner);
    bit = UINT64_C (1) << (trial - 1) % s->repeats;
    if (!(r->failed & bit) || (!is_inner_running (s, inner, 0) && inner_revive (s, inner) < 0))
        return inner_refuse ();
    r->failed &= ~bit;
    r->ended &= ~bit;
    s->outer++;
    return 0;
}

int searcher_report (struct searcher *s, long trial, int64_t length, double value)
{
    if (s->repeats == 1)
        return inner_report (s, trial, length, value);
    return trial >= 1 && is_inner_running (s, inner_of (s, trial), 0) ? 0 : inner_refuse ();
}

bool searcher_stops (const struct searcher *s, long trial)
{
    return s->repeats == 1 && trial >= 1 && trial <= s->created
           && searcher_trial (s, trial)->state == TRIAL_RUNNING && searcher_trial (s, trial)->stops;
}

int searcher_spend (struct searcher *s, long trial, double seconds)
{
    return inner_spend (s, trial < 1 ? 0 : inner_of (s, trial), seconds);
}
