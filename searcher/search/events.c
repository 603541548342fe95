/* SPDX-License-Identifier: Apache-2.0 */
/* Choose the next trial to run, and apply the events of a search. */
#include "searcher/search/events.h"

#include <math.h>
#include <string.h>

#include "searcher/schedulers/rung.h"
#include "searcher/search/kinds.h"
#include "searcher/state/state.h"

/* ---- which trial is next ---- */

/* The bracket for a fresh trial: among those with trials left, the first, or
 * the one that has begun the smallest part of its trials, so that all brackets
 * advance together, however few workers there are.  'length', unless 0, is the
 * length at which its trials start.
 */
static struct bracket *fresh_bracket (const struct searcher *s, int64_t length, bool within_limit)
{
    struct bracket *best = NULL;

    for (int i = 0; i < s->brackets; i++) {
        struct bracket *b = searcher_bracket (s, i);
        if (b->created == b->trials || (within_limit && b->running >= b->limit)
            || (length && length != s->length[b->first]))
            continue;
        if (!best || b->created * best->trials < best->created * b->trials)
            best = b;
        if (searcher_schedule (s)->in_order)
            break;
    }
    return best;
}

bool searcher_is_spent (const struct searcher *s)
{
    return s->max_seconds > 0 && s->spent >= s->max_seconds;
}

/* Take the next point that is to be tried first, or ask the sampler; masked. */
static void propose_point (const struct searcher *s, long trial, double *x)
{
    if (trial <= s->points) {
        const double *first = searcher_at (s, s->at_first);
        if (s->n > 0)
            memcpy (x, first + (trial - 1) * s->n, s->n * sizeof (*x));
        return;
    }
    searcher_sampler (s)->point (s, trial, x);
    point_mask (s, x);
    if (!point_allowed (s, x)) {
        point_random (s, trial, x);
        point_mask (s, x);
    }
}

static void ask_new_point (const struct searcher *s, struct search_op *op, double *x)
{
    const struct search_scheduler *schedule = searcher_schedule (s);

    op->trial = s->created + 1;
    op->fresh = true;
    if (!schedule->clone || !schedule->clone (s, op, x))
        propose_point (s, op->trial, x);
}

static int64_t due_length (const struct searcher *s)
{
    return s->length[searcher_trial (s, *due_trial (s, 0))->rung];
}

enum search_answer inner_ask (const struct searcher *s, struct search_op *op, double *x)
{
    const struct bracket *b;

    *op = (struct search_op){ 0 };
    if (s->limit > 0 && s->running >= s->limit)
        return SEARCH_WAIT;
    b = searcher_is_spent (s) ? NULL : fresh_bracket (s, 0, true);
    /* a population advances together, however few workers there are */
    if (b && (s->due == 0 || searcher_schedule (s)->clone)) {
        op->length = s->length[b->first];
        ask_new_point (s, op, x);
        if (s->due == 0 || op->length <= due_length (s))
            return SEARCH_RUN;
        *op = (struct search_op){ 0 };
    }
    if (searcher_is_spent (s) || s->due == 0)
        return s->running > 0 ? SEARCH_WAIT : SEARCH_DONE;
    op->trial = *due_trial (s, 0);
    op->length = due_length (s);
    if (searcher_schedule (s)->relieve)
        searcher_schedule (s)->relieve (s, op, x);
    return SEARCH_RUN;
}

/* ---- events ---- */

static void start_trial (struct searcher *s, struct search_trial *t)
{
    t->state = TRIAL_RUNNING;
    s->running++;
    searcher_bracket (s, t->bracket)->running++;
}

static void forget_values (struct searcher *s, long trial)
{
    for (int64_t i = 0; i < s->width; i++)
        searcher_values (s, trial)[i] = NAN;
}

/* For several objectives, all values. */
static void forget_rung (struct searcher *s, long trial)
{
    if (s->objectives > 1)
        forget_values (s, trial);
    else
        searcher_values (s, trial)[searcher_trial (s, trial)->rung] = NAN;
}

/* The bracket for the fresh trial of 'op', NULL if there is none. */
static struct bracket *bracket_for (struct searcher *s, const struct search_op *op)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    struct bracket *b;

    if (schedule->begun)
        return schedule->begun (s, op) ? searcher_bracket (s, 0) : NULL;
    if (op->from != 0)
        return NULL;
    if (!(b = fresh_bracket (s, op->length, true)))
        b = fresh_bracket (s, op->length, false);
    return b;
}

static int rung_at (const struct searcher *s, int64_t length)
{
    int rung = 0;

    while (rung < s->rungs - 1 && s->length[rung] < length)
        rung++;
    return rung;
}

/* A clone inherits the results of the trial whose checkpoint it starts from. */
static void inherit_results (struct searcher *s, const struct search_op *op)
{
    struct search_trial *t = searcher_trial (s, op->trial);

    t->own = t->rung;
    memcpy (searcher_values (s, op->trial), searcher_values (s, op->from),
            t->rung * sizeof (double));
}

/* Several workers ask at once, so that a log may hold a trial that this
 * searcher would not have proposed: reject only what is inconsistent, and
 * enforce no limits.
 */
static int begin_fresh (struct searcher *s, const struct search_op *op, const double *x)
{
    struct bracket *b;
    struct search_trial *t;

    if (op->trial != s->created + 1 || op->length < 1 || s->created == s->capacity
        || !point_fits (s, x) || !(b = bracket_for (s, op)))
        return inner_refuse ();
    if (s->at_points) {
        if (s->n > 0)
            memcpy (searcher_point (s, op->trial), x, s->n * sizeof (*x));
        forget_values (s, op->trial);
    }
    t = searcher_trial (s, op->trial);
    t->bracket = b - searcher_bracket (s, 0);
    t->rung = op->from ? rung_at (s, op->length) : b->first;
    if (op->from)
        inherit_results (s, op);
    s->created++;
    b->created++;
    s->work_open += searcher_segment (s, t);
    start_trial (s, t);
    return 0;
}

static int begin_next (struct searcher *s, const struct search_op *op)
{
    struct search_trial *t;

    if (op->trial < 1 || op->trial > s->created)
        return inner_refuse ();
    t = searcher_trial (s, op->trial);
    if (t->state != TRIAL_DUE || op->length != s->length[t->rung])
        return inner_refuse ();
    due_remove (s, op->trial);
    start_trial (s, t);
    return 0;
}

int inner_begin (struct searcher *s, const struct search_op *op, const double *x)
{
    return op->fresh ? begin_fresh (s, op, x) : begin_next (s, op);
}

/* Work done, relative to the work known to be needed, at least the planned
 * work.  Promotions add work: the value must not decrease then.
 */
static void update_progress (struct searcher *s)
{
    double all = s->work + s->work_open, part;

    for (int i = 0; i < s->brackets; i++) {
        const struct bracket *b = searcher_bracket (s, i);
        all += (double)(b->trials - b->created) * s->length[b->first];
    }
    part = s->work / (all > s->work_planned ? all : s->work_planned);
    if (s->max_seconds > 0 && s->spent > part * s->max_seconds)
        part = s->spent / s->max_seconds;
    if (s->running == 0 && (searcher_is_spent (s) || (s->due == 0 && s->created == s->trials)))
        part = 1;
    else if (part >= 1)
        part = 1 - 0x1p-53;
    if (part > s->progress)
        s->progress = part;
}

void inner_restart_progress (struct searcher *s)
{
    s->progress = 0;
    update_progress (s);
}

/* Store the values of a rung, or all values of a full training; NULL: a bad trial. */
static void keep_values (struct searcher *s, long trial, const double *values)
{
    double *kept = searcher_values (s, trial);
    bool bad = !values;

    for (int64_t i = 0; values && i < s->objectives; i++)
        bad = bad || !isfinite (values[i]);
    if (s->objectives == 1)
        kept[searcher_trial (s, trial)->rung] = bad ? INFINITY : searcher_objective (s, 0, *values);
    else
        for (int64_t i = 0; i < s->objectives; i++)
            kept[i] = bad ? INFINITY : searcher_objective (s, i, values[i]);
}

static void stop_running (struct searcher *s, struct search_trial *t)
{
    t->stops = false;
    s->running--;
    searcher_bracket (s, t->bracket)->running--;
    s->work_open -= searcher_segment (s, t);
}

/* Decide what to do after the trial's value. */
static void judge_value (struct searcher *s, long trial, double value)
{
    struct search_trial *t = searcher_trial (s, trial);
    struct results r;

    if (t->rung < s->rungs - 1)
        searcher_schedule (s)->ended (s, trial, value);
    else if (t->goal && t->state == TRIAL_PAUSED)
        due_go_on (s, trial);
    else if (s->divisor.p > s->divisor.q) {
        /* kept for the case that a rung is added above */
        r = rung_results (s, searcher_bracket (s, t->bracket), t->rung);
        rung_add (&r, trial, value, 0);
    }
}

/* The segment of the running trial has ended; NULL: without a result. */
static int end_segment (struct searcher *s, long trial, const double *values, bool ended)
{
    struct search_trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);
    /* learn once for each trial: a strategy compares values of the same length */
    bool learns = (t->rung == s->rungs - 1 || ended) && !t->from;

    t->state = ended ? TRIAL_ENDED : TRIAL_PAUSED;
    stop_running (s, t);
    s->work += searcher_segment (s, t);
    if (b->highest < t->rung)
        b->highest = t->rung;
    if (s->at_values)
        keep_values (s, trial, values);
    judge_value (s, trial, values ? searcher_objective (s, 0, *values) : INFINITY);
    if (learns && searcher_sampler (s)->learn)
        searcher_sampler (s)->learn (s, trial);
    update_progress (s);
    return 0;
}

static bool is_trial_running (const struct searcher *s, long trial)
{
    return trial >= 1 && trial <= s->created && searcher_trial (s, trial)->state == TRIAL_RUNNING;
}

int inner_observe (struct searcher *s, long trial, int64_t length, const double *values)
{
    const struct search_trial *t;
    bool good = true;

    if (!is_trial_running (s, trial))
        return inner_refuse ();
    t = searcher_trial (s, trial);
    if (length != searcher_goal (s, t)
        && !(t->stops && length >= 1 && length < searcher_goal (s, t)))
        return inner_refuse ();
    for (int64_t i = 0; i < s->objectives; i++)
        good = good && isfinite (values[i]);
    return end_segment (s, trial, good ? values : NULL, t->stops || !good);
}

/* Add a trial in place of one that does not count; its values tell where not to search. */
static void replace_trial (struct searcher *s, long trial)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    struct search_trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);

    t->state = TRIAL_ENDED;
    t->replaced = true;
    stop_running (s, t);
    b->trials++;
    b->rejected++;
    s->trials++;
    if (s->at_values)
        keep_values (s, trial, NULL);
    if (schedule->forget)
        schedule->forget (s, trial);
    if (searcher_sampler (s)->learn)
        searcher_sampler (s)->learn (s, trial);
    update_progress (s);
}

/* Whether another trial can take its place: it has no results, or they can be forgotten. */
static bool is_replaceable (const struct searcher *s, long trial)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    const struct search_trial *t = searcher_trial (s, trial);
    const struct bracket *b = searcher_bracket (s, t->bracket);

    return !schedule->fixed && b->rejected < b->capacity
           && (searcher_start (s, t) == 0 || (schedule->forget && !t->from));
}

int inner_exit (struct searcher *s, long trial, bool rejected)
{
    if (!is_trial_running (s, trial))
        return inner_refuse ();
    if (rejected && is_replaceable (s, trial)) {
        replace_trial (s, trial);
        return 0;
    }
    (void)end_segment (s, trial, NULL, true);
    if (!rejected)
        searcher_trial (s, trial)->state = TRIAL_FAILED;
    return 0;
}

/* As before the exit, except for what was decided since. */
int inner_revive (struct searcher *s, long trial)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    struct search_trial *t;
    struct results r;

    if (trial < 1 || trial > s->created || searcher_trial (s, trial)->state != TRIAL_FAILED)
        return inner_refuse ();
    t = searcher_trial (s, trial);
    if (s->at_values)
        forget_rung (s, trial);
    if (s->divisor.p > s->divisor.q) {
        r = rung_results (s, searcher_bracket (s, t->bracket), t->rung);
        rung_remove (&r, trial);
    }
    if (schedule->revived)
        schedule->revived (s, trial);
    s->work -= searcher_segment (s, t);
    s->work_open += searcher_segment (s, t);
    start_trial (s, t);
    inner_restart_progress (s);
    return 0;
}

int inner_report (struct searcher *s, long trial, int64_t length, double value)
{
    const struct search_scheduler *schedule = searcher_schedule (s);
    struct search_trial *t;

    if (!is_trial_running (s, trial))
        return inner_refuse ();
    t = searcher_trial (s, trial);
    if (length < 1 || length > searcher_goal (s, t))
        return inner_refuse ();
    if (schedule->watch && !t->stops
        && schedule->watch (s, trial, length, searcher_objective (s, 0, value)))
        t->stops = true;
    return 0;
}

int inner_spend (struct searcher *s, long trial, double seconds)
{
    if (trial < 1 || trial > s->created || !(seconds >= 0) || !isfinite (seconds))
        return inner_refuse ();
    s->spent += seconds;
    if (s->at_seconds)
        *searcher_seconds (s, trial) += seconds;
    update_progress (s);
    return 0;
}
