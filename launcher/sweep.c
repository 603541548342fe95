/* SPDX-License-Identifier: Apache-2.0 */
/* Replay the decision log into the state of a sweep. */
#include "launcher/sweep.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "launcher/log.h"
#include "runtime/error.h"

/* ---- numbers ---- */

json_t *number_json (double v)
{
    if (isnan (v))
        return json_string ("nan");
    if (isinf (v))
        return json_string (v > 0 ? "inf" : "-inf");
    return json_real (v);
}

double number_of (const json_t *v)
{
    if (json_is_string (v))
        return strtod (json_string_value (v), NULL);
    return json_is_number (v) ? json_number_value (v) : NAN;
}

bool sweep_better (const struct sweep *s, double a, double b)
{
    if (!isfinite (a) || !isfinite (b))
        return isfinite (a) && !isfinite (b);
    return s->exp->search.smaller_is_better ? a < b : a > b;
}

struct trial *sweep_trial (const struct sweep *s, long number)
{
    return number >= 1 && number <= s->ntrials ? &s->trials[number - 1] : NULL;
}

/* ---- one function an event ---- */

/* Damage that checksums cannot see: events that make no sense. */
static int bad_event (struct slurmdl_error *err, const char *what)
{
    errno = EBADMSG;
    return errorf (err, "decision log: %s", what);
}

static int
apply_create (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct experiment *e = s->exp;

    if (s->searcher)
        return 0;
    if (json_integer_value (json_object_get (event, "version")) != 1)
        return bad_event (err, "written by a newer version of dl");
    e->seed = json_integer_value (json_object_get (event, "seed"));
    e->search.seed = (uint64_t)e->seed;
    free (e->dir);
    e->dir = strdup (json_string_value (json_object_get (event, "dir")) ?: ".");
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
    long n = s->ntrials;

    if ((n & (n - 1)) == 0) {
        size_t room = n ? 2 * (size_t)n : 1;
        struct trial *list = realloc (s->trials, room * sizeof (*list));
        if (!list)
            return errorf (err, "out of memory");
        s->trials = list;
    }
    s->trials[n] = (struct trial){
        .metric = NAN,
        .best = NAN,
        .hparams = json_incref (json_object_get (event, "hparams")),
    };
    s->ntrials++;
    return 0;
}

static int
apply_begin (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    struct search_op op = {
        .trial = (long)json_integer_value (json_object_get (event, "trial")),
        .length = json_integer_value (json_object_get (event, "length")),
    };
    const json_t *point = json_object_get (event, "x");
    double *x = calloc (s->exp->nparams + 1, sizeof (*x));
    struct trial *t;
    int rv = -1;

    if (!x)
        return errorf (err, "out of memory");
    op.fresh = op.trial == s->ntrials + 1;
    for (size_t i = 0; i < s->exp->nparams; i++)
        x[i] = number_of (json_array_get (point, i));
    if (searcher_begin (s->searcher, &op, x) < 0)
        rv = bad_event (err, "a segment begins that the searcher cannot begin");
    else if (!op.fresh || add_trial (s, event, err) == 0)
        rv = 0;
    free (x);
    if (rv == 0) {
        t = sweep_trial (s, op.trial);
        t->target = op.length;
        t->state = TRIAL_OPEN;
        t->losts = 0;
    }
    return rv;
}

/* The trial whose attempt is the one that counts now, else NULL: what a
 * fenced attempt says is too late.
 */
static struct trial *
live_trial (struct sweep *s, const json_t *event, long *attempt)
{
    long n = (long)json_integer_value (json_object_get (event, "trial"));
    struct trial *t = sweep_trial (s, n);

    *attempt = (long)json_integer_value (json_object_get (event, "attempt"));
    return t && t->state == TRIAL_OPEN && *attempt == t->over + 1 ? t : NULL;
}

static void keep_best (struct sweep *s, struct trial *t)
{
    const struct trial *best = sweep_trial (s, s->best);

    if (!isfinite (t->best) || sweep_better (s, t->metric, t->best)) {
        t->best = t->metric;
        t->best_length = t->length;
    }
    if (isfinite (t->best) && (!best || sweep_better (s, t->best, best->best)))
        s->best = t - s->trials + 1;
}

static int
apply_result (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    int64_t length = json_integer_value (json_object_get (event, "length"));
    long attempt;
    struct trial *t = live_trial (s, event, &attempt);

    if (!t || length != t->target)
        return 0;
    t->over = attempt;
    t->accepted = attempt;
    t->state = TRIAL_PAUSED;
    t->length = length;
    t->metric = number_of (json_object_get (event, "metric"));
    t->seconds += number_of (json_object_get (event, "seconds"));
    keep_best (s, t);
    if (searcher_tell (s->searcher, t - s->trials + 1, length, t->metric) < 0)
        return bad_event (err, "a result that the searcher did not wait for");
    return 0;
}

/* fail, lost and park end an attempt; the segment stays open. */
static int
end_attempt (struct sweep *s, const json_t *event, bool fail, bool lost)
{
    const char *why = json_string_value (json_object_get (event, "why"));
    long attempt;
    struct trial *t = live_trial (s, event, &attempt);

    if (!t)
        return 0;
    t->over = attempt;
    t->fails += fail;
    t->losts += lost;
    if (why) {
        free (t->why);
        t->why = strdup (why);
    }
    return 0;
}

static int
apply_fail (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)err;
    return end_attempt (s, event, true, false);
}

static int
apply_lost (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)err;
    return end_attempt (s, event, false, true);
}

static int
apply_park (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)err;
    return end_attempt (s, event, false, false);
}

static int
apply_exit (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    long n = (long)json_integer_value (json_object_get (event, "trial"));
    struct trial *t = sweep_trial (s, n);

    if (!t || t->state != TRIAL_OPEN)
        return 0;
    t->state = TRIAL_FAILED;
    if (searcher_exit (s->searcher, n) < 0)
        return bad_event (err, "the end of a trial that the searcher ended");
    return 0;
}

static int
apply_stop (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)event;
    (void)err;
    if (s->state == SWEEP_RUNNING)
        s->state = SWEEP_STOPPED;
    return 0;
}

static int
apply_resume (struct sweep *s, const json_t *event, struct slurmdl_error *err)
{
    (void)event;
    (void)err;
    if (s->state == SWEEP_STOPPED)
        s->state = SWEEP_RUNNING;
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
    { "result", apply_result }, { "fail", apply_fail },
    { "lost", apply_lost },     { "park", apply_park },
    { "exit", apply_exit },     { "stop", apply_stop },
    { "resume", apply_resume }, { "end", apply_end },
};

static int apply (const json_t *event, void *arg, struct slurmdl_error *err)
{
    const char *op = json_string_value (json_object_get (event, "op"));
    struct sweep *s = arg;

    if (!op || (!s->searcher && strcmp (op, "create")))
        return bad_event (err, "the first entry is not \"create\"");
    s->changed = number_of (json_object_get (event, "time"));
    for (size_t i = 0; i < sizeof (events) / sizeof (*events); i++)
        if (!strcmp (events[i].op, op))
            return events[i].apply (s, event, err);
    return bad_event (err, "an event of a newer version of dl");
}

/* ---- the folder ---- */

int sweep_sync (struct sweep *s, struct slurmdl_error *err)
{
    return log_sync (s->log, apply, s, err);
}

int sweep_put (struct sweep *s, json_t *list, struct slurmdl_error *err)
{
    int rv =
        list ? log_append (s->log, list, err) : errorf (err, "out of memory");

    json_decref (list);
    if (rv >= 0 && sweep_sync (s, err) < 0)
        return -1;
    return rv;
}

struct sweep *
sweep_open (const char *dir, struct problems *p, struct slurmdl_error *err)
{
    struct sweep *s = calloc (1, sizeof (*s));
    char path[PATH_MAX];

    if (!s || !(s->dir = strdup (dir))) {
        errorf (err, "out of memory");
        goto fail;
    }
    snprintf (path, sizeof (path), "%s/experiment.conf", dir);
    if (!(s->exp = experiment_read (path, p))) {
        errorf (err, "%s: cannot be used", path);
        goto fail;
    }
    snprintf (path, sizeof (path), "%s/log", dir);
    if (!(s->log = log_create (path, err)) || sweep_sync (s, err) < 0)
        goto fail;
    return s;
fail:
    sweep_close (s);
    return NULL;
}

void sweep_close (struct sweep *s)
{
    int e = errno;

    if (!s)
        return;
    for (long i = 0; i < s->ntrials; i++) {
        json_decref (s->trials[i].hparams);
        free (s->trials[i].why);
    }
    free (s->trials);
    json_decref (s->create);
    searcher_destroy (s->searcher);
    log_destroy (s->log);
    experiment_destroy (s->exp);
    free (s->dir);
    free (s);
    errno = e;
}

/* ---- events ---- */

static double now (void)
{
    struct timespec ts;

    clock_gettime (CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)(ts.tv_nsec / 1000000) / 1000;
}

json_t *event_create (const char *op, const char *by)
{
    return json_pack ("{s:s, s:f, s:s}", "op", op, "time", now (), "by", by);
}

json_t *event_trial (const char *op, const char *by, long trial, long attempt)
{
    json_t *event = event_create (op, by);

    json_object_set_new (event, "trial", json_integer (trial));
    json_object_set_new (event, "attempt", json_integer (attempt));
    return event;
}

/* ---- views ---- */

const char *sweep_state_name (enum sweep_state state)
{
    static const char *const names[] = {
        "new", "running", "stopped", "completed", "failed"
    };
    return names[state];
}

const char *trial_state_name (const struct sweep *s, const struct trial *t)
{
    switch (t->state) {
    case TRIAL_OPEN:
        return s->state == SWEEP_STOPPED ? "stopped" : "open";
    case TRIAL_FAILED:
        return "failed";
    case TRIAL_PAUSED:
        break;
    }
    if (t->length >= s->exp->search.max_length)
        return "completed";
    return s->state == SWEEP_COMPLETED ? "ended early" : "paused";
}
