/* SPDX-License-Identifier: Apache-2.0 */
/* Replay the decision log: what each event does to the state of a sweep. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sweep.h"
#include "runtime/error.h"

/* Damage that checksums cannot see: events that make no sense. */
static int bad_event (struct slurmdl_error *err, const char *what)
{
    errno = EBADMSG;
    return errorf (err, "decision log: %s", what);
}

static json_int_t integer_of (const json_t *event, const char *name)
{
    return json_integer_value (json_object_get (event, name));
}

static long number_of_trial (const struct sweep *s, const struct trial *t)
{
    return t - s->trials + 1;
}

/* The array with room for one more than its n; NULL if out of memory. */
static void *grow (void *array, size_t n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return array;
    return realloc (array, (n ? 2 * n : 1) * size);
}

static int add_history (struct sweep *s, long what, struct slurmdl_error *err)
{
    long *list = grow (s->history, (size_t)s->nhistory, sizeof (*list));

    if (!list)
        return errorf (err, "out of memory");
    s->history = list;
    list[s->nhistory++] = what;
    return 0;
}

/* ---- create and begin ---- */

static int
apply_create (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct experiment *e = s->exp;

    if (s->searcher)
        return 0;
    if (integer_of (event, "version") != 1)
        return bad_event (err, "written by a newer version of dl");
    e->seed = integer_of (event, "seed");
    e->search.seed = (uint64_t)e->seed;
    free (e->dir);
    e->dir = strdup (json_string_value (json_object_get (event, "dir")) ?: ".");
    if (known_read (e, json_object_get (event, "known")) < 0)
        return errorf (err, "out of memory");
    if (known_read (e, json_object_get (event, "known")) < 0)
        return errorf (err, "out of memory");
    s->searcher = searcher_create (&e->search, e->params, e->nparams);
    if (!s->searcher)
        return errorf (err, "cannot create the searcher: %s", strerror (errno));
    s->state = SWEEP_RUNNING;
    s->created = number_of (json_object_get (event, "time"));
    s->create = json_incref ((json_t *)event);
    return 0;
}

static int
add_trial (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct trial *list = grow (s->trials, (size_t)s->ntrials, sizeof (*list));

    if (!list)
        return errorf (err, "out of memory");
    s->trials = list;
    list[s->ntrials] = (struct trial){
        .metric = NAN,
        .best = NAN,
        .report = NAN,
        .hparams = json_incref (json_object_get (event, "hparams")),
        .from = (long)integer_of (event, "from"),
        .from_length = integer_of (event, "from_length"),
    };
    s->ntrials++;
    return add_history (s, s->ntrials, err);
}

static int begin (struct sweep *s, const json_t *event, struct search_op *op)
{
    const json_t *point = json_object_get (event, "x");
    size_t n = s->exp->nparams;
    double *x = calloc (n + 1, sizeof (*x));
    int rv;

    if (!x)
        return -1;
    for (size_t i = 0; i < n; i++)
        x[i] = number_of (json_array_get (point, i));
    rv = searcher_begin (s->searcher, op, x);
    free (x);
    return rv;
}

static int
apply_begin (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct search_op op = {
        .trial = (long)integer_of (event, "trial"),
        .length = integer_of (event, "length"),
        .from = (long)integer_of (event, "from"),
        .from_length = integer_of (event, "from_length"),
    };
    struct trial *t;

    op.fresh = op.trial == s->ntrials + 1;
    if (begin (s, event, &op) < 0)
        return errno == ENOMEM
                   ? errorf (err, "out of memory")
                   : bad_event (
                       err, "a segment begins that the searcher cannot begin");
    if (op.fresh && add_trial (s, event, err) < 0)
        return -1;
    t = sweep_trial (s, op.trial);
    t->target = op.length;
    t->state = TRIAL_OPEN;
    t->losts = 0;
    t->spent = 0;
    return 0;
}

/* ---- the end of an attempt ---- */

/* The trial whose attempt is the one that counts now, else NULL: what a
 * fenced attempt says is too late.
 */
static struct trial *
live_trial (struct sweep *s, const json_t *event, long *attempt)
{
    struct trial *t = sweep_trial (s, (long)integer_of (event, "trial"));

    *attempt = (long)integer_of (event, "attempt");
    return t && t->state == TRIAL_OPEN && *attempt == t->over + 1 ? t : NULL;
}

static double seconds_of (const json_t *event)
{
    double seconds = number_of (json_object_get (event, "seconds"));

    return isfinite (seconds) && seconds > 0 ? seconds : 0;
}

/* The segment has ended for good: what all attempts at it have cost. */
static int end_segment (struct sweep *s,
                        struct trial *t,
                        enum trial_state state,
                        struct slurmdl_error *err)
{
    long n = number_of_trial (s, t);

    t->state = state;
    searcher_spend (s->searcher, n, t->spent);
    return add_history (s, -n, err);
}

static void keep_best (struct sweep *s, struct trial *t)
{
    const struct trial *best = sweep_trial (s, s->best);

    if (!isfinite (t->best) || sweep_better (s, t->metric, t->best)) {
        t->best = t->metric;
        t->best_length = t->length;
    }
    if (isfinite (t->best) && (!best || sweep_better (s, t->best, best->best)))
        s->best = number_of_trial (s, t);
}

static int keep_values (const struct sweep *s,
                        struct trial *t,
                        const json_t *event,
                        struct slurmdl_error *err)
{
    const json_t *values = json_object_get (event, "metrics");
    size_t n = sweep_metrics (s);

    t->metric = number_of (json_object_get (event, "metric"));
    if (n == 1)
        return 0;
    if (!t->values && !(t->values = calloc (n, sizeof (*t->values))))
        return errorf (err, "out of memory");
    for (size_t i = 0; i < n; i++)
        t->values[i] = number_of (json_array_get (values, i));
    return 0;
}

static int
add_milestone (struct trial *t, long attempt, struct slurmdl_error *err)
{
    struct milestone *list =
        grow (t->milestones, t->nmilestones, sizeof (*list));

    if (!list)
        return errorf (err, "out of memory");
    t->milestones = list;
    list[t->nmilestones++] = (struct milestone){ t->length, attempt };
    return 0;
}

/* It ends at its target, or before if the searcher has stopped it. */
static bool
fits (const struct sweep *s, const struct trial *t, const json_t *event)
{
    int64_t length = integer_of (event, "length");

    if (!json_is_true (json_object_get (event, "stopped")))
        return length == t->target;
    return length >= 1 && length < t->target
           && searcher_stops (s->searcher, number_of_trial (s, t));
}

static int tell (struct sweep *s, const struct trial *t)
{
    return searcher_tell_all (s->searcher,
                              number_of_trial (s, t),
                              t->length,
                              t->values ? t->values : &t->metric);
}

static int
apply_result (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    long attempt;
    struct trial *t = live_trial (s, event, &attempt);

    if (!t || !fits (s, t, event))
        return 0;
    t->over = attempt;
    t->stopped = json_is_true (json_object_get (event, "stopped"));
    t->length = integer_of (event, "length");
    t->seconds += seconds_of (event);
    t->spent += seconds_of (event);
    if (keep_values (s, t, event, err) < 0
        || add_milestone (t, attempt, err) < 0
        || end_segment (s, t, TRIAL_PAUSED, err) < 0)
        return -1;
    keep_best (s, t);
    if (tell (s, t) < 0)
        return bad_event (err, "a result that the searcher did not wait for");
    return 0;
}

static void keep_why (struct trial *t, const json_t *event)
{
    const char *why = json_string_value (json_object_get (event, "why"));

    if (why) {
        free (t->why);
        t->why = strdup (why);
    }
}

/* fail, lost and park end an attempt; the segment stays open. */
static struct trial *end_attempt (struct sweep *s, const json_t *event)
{
    long attempt;
    struct trial *t = live_trial (s, event, &attempt);

    if (t) {
        t->over = attempt;
        t->spent += seconds_of (event);
        keep_why (t, event);
    }
    return t;
}

static int
apply_fail (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct trial *t = end_attempt (s, event);

    (void)err;
    if (t)
        t->fails++;
    return 0;
}

static int
apply_lost (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct trial *t = end_attempt (s, event);

    (void)err;
    if (t)
        t->losts++;
    return 0;
}

static int
apply_park (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)err;
    end_attempt (s, event);
    return 0;
}

static int
apply_reject (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct trial *t = end_attempt (s, event);

    if (!t)
        return 0;
    if (end_segment (s, t, TRIAL_REJECTED, err) < 0)
        return -1;
    if (searcher_reject (s->searcher, number_of_trial (s, t)) < 0)
        return bad_event (err, "a point is rejected that the searcher ended");
    return 0;
}

static int
apply_exit (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct trial *t = sweep_trial (s, (long)integer_of (event, "trial"));

    if (!t || t->state != TRIAL_OPEN)
        return 0;
    if (end_segment (s, t, TRIAL_FAILED, err) < 0)
        return -1;
    if (searcher_exit (s->searcher, number_of_trial (s, t)) < 0)
        return bad_event (err, "the end of a trial that the searcher ended");
    return 0;
}

/* Lengths grow: an attempt that begins anew repeats what is known. */
static int
apply_report (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    int64_t length = integer_of (event, "length");
    double value = number_of (json_object_get (event, "metric"));
    long attempt;
    struct trial *t = live_trial (s, event, &attempt);

    (void)err;
    if (!t || length <= t->reported || length > t->target)
        return 0;
    t->reported = length;
    t->report = value;
    searcher_report (s->searcher, number_of_trial (s, t), length, value);
    return 0;
}

/* ---- the sweep as a whole ---- */

static bool is_alive (const struct sweep *s)
{
    return s->state == SWEEP_RUNNING || s->state == SWEEP_STOPPED;
}

static int
apply_stop (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)event;
    (void)err;
    if (is_alive (s))
        s->state = SWEEP_STOPPED;
    return 0;
}

static int
apply_resume (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)event;
    (void)err;
    if (is_alive (s))
        s->state = SWEEP_RUNNING;
    return 0;
}

static int
apply_expire (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)event;
    (void)err;
    if (is_alive (s))
        s->expired = true;
    return 0;
}

static int
apply_end (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    const char *state = json_string_value (json_object_get (event, "state"));

    (void)err;
    s->state =
        state && !strcmp (state, "failed") ? SWEEP_FAILED : SWEEP_COMPLETED;
    return 0;
}

static const struct {
    const char *op;
    int (*apply) (struct sweep *s,
                  const json_t *event,
                  struct slurmdl_error *err);
} events[] = {
    { "create", apply_create }, { "begin", apply_begin },
    { "report", apply_report }, { "result", apply_result },
    { "fail", apply_fail },     { "lost", apply_lost },
    { "park", apply_park },     { "reject", apply_reject },
    { "exit", apply_exit },     { "stop", apply_stop },
    { "resume", apply_resume }, { "expire", apply_expire },
    { "end", apply_end },
};

int sweep_apply (const json_t *event, void *sweep, struct slurmdl_error *err)
{
    const char *op = json_string_value (json_object_get (event, "op"));
    struct sweep *s = sweep;

    if (!op || (!s->searcher && strcmp (op, "create")))
        return bad_event (err, "the first entry is not \"create\"");
    s->changed = number_of (json_object_get (event, "time"));
    for (size_t i = 0; i < sizeof (events) / sizeof (*events); i++)
        if (!strcmp (events[i].op, op))
            return events[i].apply (s, event, err);
    return bad_event (err, "an event of a newer version of dl");
}
