/* SPDX-License-Identifier: Apache-2.0 */
/* Ask what comes next, and apply the events of a search. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "searcher/state.h"

static const struct searcher_ops *ops (const struct searcher *s)
{
    return searcher_kinds[s->kind].ops;
}

/* ---- which trial is next ---- */

/* Number 'i' of the trials that are due, the first promoted first. */
static int32_t *due (const struct searcher *s, int64_t i)
{
    int32_t *ring = searcher_at (s, s->at_due);

    return ring + (s->due_head + i) % s->trials;
}

/* The bracket that a fresh trial goes to: of those with trials left, the one
 * that has begun the least part of its trials, so that all brackets advance
 * together, however few workers there are.  'length', if not 0, is where its
 * trials start.
 */
static struct bracket *
fresh_bracket (const struct searcher *s, int64_t length, bool within_limit)
{
    struct bracket *best = NULL;

    for (int i = 0; i < s->brackets; i++) {
        struct bracket *b = searcher_bracket (s, i);
        if (b->created == b->trials || (within_limit && b->running >= b->limit)
            || (length && length != s->length[b->first]))
            continue;
        if (!best || b->created * best->trials < best->created * b->trials)
            best = b;
    }
    return best;
}

enum search_answer
searcher_ask (const struct searcher *s, struct search_op *op, double *x)
{
    const struct bracket *b;

    if (s->limit > 0 && s->running >= s->limit)
        return SEARCH_WAIT;
    if (s->due > 0) {
        op->trial = *due (s, 0);
        op->fresh = false;
        op->length = s->length[searcher_trial (s, op->trial)->rung];
        return SEARCH_RUN;
    }
    if (!(b = fresh_bracket (s, 0, true)))
        return s->running > 0 ? SEARCH_WAIT : SEARCH_DONE;
    op->trial = s->created + 1;
    op->fresh = true;
    op->length = s->length[b->first];
    ops (s)->point (s, op->trial, x);
    return SEARCH_RUN;
}

/* ---- events ---- */

static int refuse (void)
{
    errno = EINVAL;
    return -1;
}

static int64_t segment (const struct searcher *s, const struct trial *t)
{
    return segment_length (
        s->length, searcher_bracket (s, t->bracket)->first, t->rung);
}

static void run (struct searcher *s, struct trial *t)
{
    t->state = TRIAL_RUNNING;
    s->running++;
    searcher_bracket (s, t->bracket)->running++;
}

static bool fits (const struct searcher *s, const double *x)
{
    const struct dim *dims = searcher_dims (s);

    if (!x)
        return s->n == 0;
    for (int64_t i = 0; i < s->n; i++)
        if (!space_has (dims + i, x[i]))
            return false;
    return true;
}

/* A log may hold what this searcher would not have asked for, e.g. because an
 * older one decided: the limits are not enforced here, only sense is.
 */
static int
begin_fresh (struct searcher *s, const struct search_op *op, const double *x)
{
    struct bracket *b;
    struct trial *t;

    if (op->trial != s->created + 1 || op->length < 1 || !fits (s, x))
        return refuse ();
    if (!(b = fresh_bracket (s, op->length, true))
        && !(b = fresh_bracket (s, op->length, false)))
        return refuse ();
    if (s->at_points) {
        memcpy (searcher_point (s, op->trial), x, s->n * sizeof (*x));
        *searcher_value (s, op->trial) = NAN;
    }
    t = searcher_trial (s, op->trial);
    t->bracket = b - searcher_bracket (s, 0);
    t->rung = b->first;
    s->created++;
    b->created++;
    s->work_open += segment (s, t);
    run (s, t);
    return 0;
}

/* Usually the trial is the first in the ring. */
static void remove_due (struct searcher *s, long trial)
{
    int64_t i = 0;

    while (*due (s, i) != trial)
        i++;
    for (; i > 0; i--)
        *due (s, i) = *due (s, i - 1);
    s->due_head = (s->due_head + 1) % s->trials;
    s->due--;
}

static int begin_next (struct searcher *s, const struct search_op *op)
{
    struct trial *t;

    if (op->trial < 1 || op->trial > s->created)
        return refuse ();
    t = searcher_trial (s, op->trial);
    if (t->state != TRIAL_DUE || op->length != s->length[t->rung])
        return refuse ();
    remove_due (s, op->trial);
    searcher_bracket (s, t->bracket)->due--;
    run (s, t);
    return 0;
}

int searcher_begin (struct searcher *s,
                    const struct search_op *op,
                    const double *x)
{
    return op->fresh ? begin_fresh (s, op, x) : begin_next (s, op);
}

void searcher_promote (struct searcher *s, long trial)
{
    struct trial *t = searcher_trial (s, trial);

    t->rung++;
    t->state = TRIAL_DUE;
    *due (s, s->due++) = trial;
    searcher_bracket (s, t->bracket)->due++;
    s->work_open += segment (s, t);
}

/* The work that is done by what is known to be needed, at least what was
 * planned.  A promotion makes more needed: the value may not go back then.
 */
static void update_progress (struct searcher *s)
{
    double all = s->work + s->work_open, part;

    for (int i = 0; i < s->brackets; i++) {
        const struct bracket *b = searcher_bracket (s, i);
        all += (double)(b->trials - b->created) * s->length[b->first];
    }
    part = s->work / (all > s->work_planned ? all : s->work_planned);
    if (s->running == 0 && s->due == 0 && s->created == s->trials)
        part = 1;
    else if (part >= 1)
        part = 1 - 0x1p-53;
    if (part > s->progress)
        s->progress = part;
}

static void keep_value (struct searcher *s, long trial, double value)
{
    if (!isfinite (value))
        value = INFINITY;
    else if (!s->smaller_is_better)
        value = -value;
    *searcher_value (s, trial) = value;
}

/* The segment of the running trial has ended. */
static int
end_segment (struct searcher *s, long trial, double value, bool ended)
{
    struct trial *t = searcher_trial (s, trial);
    struct bracket *b = searcher_bracket (s, t->bracket);
    bool last = t->rung == s->rungs - 1;

    t->state = last || ended ? TRIAL_ENDED : TRIAL_PAUSED;
    s->running--;
    b->running--;
    s->work += segment (s, t);
    s->work_open -= segment (s, t);
    if (b->highest < t->rung)
        b->highest = t->rung;
    if (!last)
        ops (s)->report (s, trial, value);
    else if (s->at_values)
        keep_value (s, trial, value);
    update_progress (s);
    return 0;
}

static bool is_running (const struct searcher *s, long trial)
{
    return trial >= 1 && trial <= s->created
           && searcher_trial (s, trial)->state == TRIAL_RUNNING;
}

int searcher_tell (struct searcher *s, long trial, int64_t length, double value)
{
    if (!is_running (s, trial)
        || length != s->length[searcher_trial (s, trial)->rung])
        return refuse ();
    return end_segment (s, trial, value, !isfinite (value));
}

int searcher_exit (struct searcher *s, long trial)
{
    if (!is_running (s, trial))
        return refuse ();
    return end_segment (s, trial, NAN, true);
}
