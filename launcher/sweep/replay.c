/* SPDX-License-Identifier: Apache-2.0 */
/* Replay the decision log: what each event does to the state of a sweep. */
#include "launcher/sweep/replay.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/fork_origin.h"
#include "launcher/config/points.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/snapshot.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

/* What came of an event. */
enum applied {
    APPLY_FAILED = -1,
    APPLY_DONE,
    APPLY_IGNORED, /* it makes no sense in this state, and changed nothing */
};

/* Call this after the searcher, a library that reports a lack of memory, rejected an event. */
static enum applied searcher_refused (void)
{
    if (errno == ENOMEM)
        out_of_memory ();
    return APPLY_IGNORED;
}

/* ---- changing the state ---- */

/* Fail because of damage that checksums cannot reveal: events that make no sense.  Returns -1 with
 * errno EBADMSG.
 */
static int state_damaged (struct slurmdl_error *err, const char *what)
{
    errno = EBADMSG;
    return errorf (err, "decision log: %s", what);
}

/* Replace a text of the state. */
static void state_set_text (char **at, const char *text)
{
    free (*at);
    *at = xstrdup (text);
}

/* The index of trial 'n' in s->open, or where to insert it. */
static long index_in_open (const struct sweep *s, long n)
{
    long i = s->nopen;

    while (i > 0 && s->open[i - 1] >= n)
        i--;
    return i;
}

/* Add a trial whose segment is to be trained to s->open, or remove it. */
static void state_add_open (struct sweep *s, long n)
{
    long i = index_in_open (s, n);

    XGROW (s->open, (size_t)s->nopen);
    memmove (s->open + i + 1, s->open + i, (size_t)(s->nopen - i) * sizeof (*s->open));
    s->open[i] = n;
    s->nopen++;
}

static void state_remove_open (struct sweep *s, long n)
{
    long i = index_in_open (s, n);

    s->nopen--;
    memmove (s->open + i, s->open + i + 1, (size_t)(s->nopen - i) * sizeof (*s->open));
}

/* Record that a segment of trial N has begun (N), or ended (-N). */
static void state_add_history (struct sweep *s, long what)
{
    XGROW (s->history, (size_t)s->nhistory);
    s->history[s->nhistory++] = what;
}

/* ---- nodes that fail ---- */

/* Exclude a node after this many failures in a row, if as many attempts succeeded elsewhere
 * meanwhile.
 */
enum { STREAK = 5 };

/* Find or add a node.  Returns NULL without a name. */
static struct host *know_host (struct sweep *s, const char *name)
{
    struct host *h = sweep_host (s, name);

    if (h || !name)
        return h;
    XGROW (s->hosts, s->nhosts);
    s->hosts[s->nhosts] = (struct host){ .name = xstrdup (name) };
    return &s->hosts[s->nhosts++];
}

/* Count the end of an attempt on a node. */
static void host_succeeds (struct sweep *s, const char *name)
{
    struct host *h = know_host (s, name);

    if (h) {
        h->results++;
        h->fails = 0;
        h->trials[0] = h->trials[1] = 0;
    }
}

static void host_fails (struct sweep *s, const char *name, long trial)
{
    struct host *h = know_host (s, name);

    if (!h)
        return;
    if (h->fails++ == 0)
        h->before = s->nresults;
    if (!h->trials[0])
        h->trials[0] = trial;
    else if (h->trials[0] != trial)
        h->trials[1] = trial;
}

/* Whether healthy nodes outnumber the excluded ones. */
static bool is_minority (const struct sweep *s, const struct host *h)
{
    long balance = 0;

    for (size_t i = 0; i < s->nhosts; i++) {
        const struct host *other = &s->hosts[i];
        if (other != h)
            balance += other->why ? -1 : other->results > 0;
    }
    return balance > 0;
}

bool host_spoils (const struct sweep *s, const char *name, long trial)
{
    const struct host *h = sweep_host (s, name);

    return h && !h->why && h->fails + 1 >= STREAK && (h->trials[1] != 0 || h->trials[0] != trial)
           && s->nresults - h->before >= STREAK && is_minority (s, h);
}

/* A node is excluded, or admitted again. */
static enum applied apply_exclude (struct sweep *s, const struct event *e,
                                   struct slurmdl_error *err)
{
    struct host *h = know_host (s, e->host);

    (void)err;
    if (h) {
        state_set_text (&h->why, e->off ? NULL : e->why ? e->why : "");
        h->fails = 0;
        h->trials[0] = h->trials[1] = 0;
    }
    return APPLY_DONE;
}

/* ---- failures that trials share ---- */

/* Most different failures to count; if there are more, the fault is not shared. */
enum { FAULTS_MAX = 64 };

static bool has_ending (const char *start, const char *end, const char *word)
{
    size_t n = strlen (word);

    return (size_t)(end - start) >= n && !memcmp (end - n, word, n);
}

static bool is_status (const char *start, const char *number)
{
    return has_ending (start, number, "exit status ") || has_ending (start, number, "by signal ");
}

/* The length of the word up to a blank, a quote or a bracket. */
static size_t word_length (const char *text)
{
    return strcspn (text, " \t'\"()[]<>,;");
}

/* How much of a reason to compare.  The rest differs between attempts: without a metric it quotes
 * the log, and after a hang it names the places of the ranks.
 */
static size_t length_that_counts (enum condition_reason cause, const char *why)
{
    return cause == REASON_METRIC_MISSING || cause == REASON_HANG ? strcspn (why, ";")
                                                                  : strlen (why);
}

void fault_key (char key[FAULT_KEY], enum condition_reason cause, const char *why)
{
    const char *end;
    size_t n = 0;

    why = why ?: "";
    end = why + length_that_counts (cause, why);
    for (const char *c = why; c < end && n < FAULT_KEY - 1;) {
        size_t len = word_length (c);
        if (has_ending (key, key + n, "rank # on ")) {
            key[n++] = '#'; /* the machine does not matter */
            c += strcspn (c, " :;,");
        } else if (len > 1 && memchr (c, '/', len)) {
            key[n++] = '/';
            c += len;
        } else if (isdigit ((unsigned char)*c) && !is_status (why, c)) {
            key[n++] = '#';
            while (isalnum ((unsigned char)*c))
                c++;
        } else if (isalnum ((unsigned char)*c))
            while (isalnum ((unsigned char)*c) && n < FAULT_KEY - 1)
                key[n++] = *c++;
        else
            key[n++] = *c++;
    }
    key[n] = '\0';
}

static struct fault *find_fault (const struct sweep *s, const char *key)
{
    for (size_t i = 0; i < s->nfaults; i++)
        if (!strcmp (s->faults[i].key, key))
            return &s->faults[i];
    return NULL;
}

static struct fault *add_fault (struct sweep *s, const char *key)
{
    XGROW (s->faults, s->nfaults);
    s->faults[s->nfaults] = (struct fault){ .key = xstrdup (key) };
    return &s->faults[s->nfaults++];
}

void fault_note (struct sweep *s, const struct event *e)
{
    char key[FAULT_KEY];
    struct fault *f;

    if (s->nresults || e->free || !e->why)
        return;
    fault_key (key, e->cause, e->why);
    if (e->progress) { /* the trial got further in spite of it */
        if ((f = find_fault (s, key)) && f->trial == (long)e->trial)
            f->count = 0;
        return;
    }
    if (!(f = find_fault (s, key)) && s->nfaults == FAULTS_MAX)
        return;
    if (!f)
        f = add_fault (s, key);
    f->count++;
    f->trial = (long)e->trial;
    f->attempt = (long)e->attempt;
    f->seconds = e->seconds > 0 ? e->seconds : 0;
    if (!f->host)
        state_set_text (&f->host, e->host);
    else if (e->host && strcmp (f->host, e->host))
        f->spread = true;
    state_set_text (&f->why, e->why);
    f->cause = e->cause;
    state_set_text (&f->slot, e->by ? e->by : "");
}

const struct fault *fault_like (const struct sweep *s, enum condition_reason cause, const char *why)
{
    char key[FAULT_KEY];

    if (s->nresults || !why)
        return NULL;
    fault_key (key, cause, why);
    return find_fault (s, key);
}

const struct fault *fault_most (const struct sweep *s)
{
    const struct fault *most = NULL;

    for (size_t i = 0; i < s->nfaults && !s->nresults; i++)
        if (!most || s->faults[i].count > most->count)
            most = &s->faults[i];
    return most;
}

const struct fault *fault_shared (const struct sweep *s)
{
    const struct fault *most = fault_most (s);

    return most && most->count >= FAULT_LIMIT ? most : NULL;
}

void faults_forget (struct sweep *s)
{
    for (size_t i = 0; i < s->nfaults; i++) {
        free (s->faults[i].key);
        free (s->faults[i].host);
        free (s->faults[i].why);
        free (s->faults[i].slot);
    }
    free (s->faults);
    s->faults = NULL;
    s->nfaults = 0;
    state_set_text (&s->cause.why, NULL);
}

bool sweep_is_faulty (const struct sweep *s)
{
    return s->state == SWEEP_PAUSED && s->cause.why;
}

/* ---- requests of users ---- */

static enum applied apply_pause (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)err;
    state_set_text (&s->cause.why, e->why);
    s->cause.cause = e->cause;
    s->cause.trial = (long)e->trial;
    s->cause.attempt = (long)e->attempt;
    return APPLY_DONE;
}

/* Trials that failed because of a shared fault get all their retries back. */
static enum applied apply_resume (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)err;
    if (e->code && s->code && s->nresults == 0) {
        s->is_mended = true;
        state_set_text (&s->code, e->code);
    }
    for (long i = 0; i < s->nopen && s->cause.why; i++)
        sweep_trial (s, s->open[i])->tries.failed = 0;
    faults_forget (s);
    return APPLY_DONE;
}

static enum applied apply_continue (struct sweep *s, const struct event *e,
                                    struct slurmdl_error *err)
{
    struct search_config *c = &s->exp->search->config;

    (void)err;
    sweep_unshare_searcher (s);
    if (searcher_extend (&s->searcher, (long)e->max_trials, e->max_length, 0) < 0)
        return searcher_refused ();
    if (e->max_trials)
        c->max_trials = (long)e->max_trials;
    if (e->max_length)
        c->max_length = e->max_length;
    s->expired = false;
    s->reached = false;
    s->archived = false;
    faults_forget (s);
    return APPLY_DONE;
}

/* Its segment is open again, as if it had not failed. */
static enum applied apply_retry (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = sweep_trial (s, (long)e->trial);

    (void)err;
    if (!t || t->state != TRIAL_FAILED)
        return APPLY_DONE;
    if (searcher_revive (s->searcher, (long)e->trial) < 0)
        return APPLY_IGNORED;
    faults_forget (s);
    t->state = TRIAL_OPEN;
    conditions_apply (&t->conditions,
                      &(struct life_event){ LIFE_REVIVED, e->time, REASON_RETRIED, NULL });
    t->tries = (struct tries){ 0 };
    t->spent = 0;
    state_add_open (s, (long)e->trial);
    state_add_history (s, (long)e->trial);
    return APPLY_DONE;
}

static enum applied apply_submit (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)err;
    if (!e->job || !*e->job)
        return APPLY_DONE;
    XGROW (s->submits, s->nsubmits);
    s->submits[s->nsubmits++] =
        (struct submit){ xstrdup (e->job), (long)e->first, (long)e->last, e->time, e->memory };
    return APPLY_DONE;
}

static enum applied apply_scale (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    const char *p = e->slots ? e->slots : "";

    (void)err;
    s->wanted = (long)e->workers;
    s->starts++;
    while (*(p += strspn (p, " "))) {
        size_t len = strcspn (p, " ");
        strings_add_part (&s->retired, p, len);
        p += len;
    }
    return APPLY_DONE;
}

static char **find_in_list (char **list, const char *text)
{
    for (; list && *list; list++)
        if (!strcmp (*list, text))
            return list;
    return NULL;
}

bool sweep_retires (const struct sweep *s, const char *slot)
{
    return find_in_list (s->retired, slot);
}

static enum applied apply_label (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    char **at = e->label ? find_in_list (s->labels, e->label) : NULL;

    (void)err;
    if (!e->label || !*e->label)
        return APPLY_DONE;
    if (!e->off && !at)
        strings_add (&s->labels, e->label);
    else if (e->off && at) {
        free (*at);
        do
            at[0] = at[1];
        while (*at++);
    }
    return APPLY_DONE;
}

static enum applied apply_archive (struct sweep *s, const struct event *e,
                                   struct slurmdl_error *err)
{
    (void)err;
    s->archived = !e->off;
    return APPLY_DONE;
}

/* Record who requested something, and what. */
static void request_note (struct sweep *s, const struct event *e)
{
    static const char *const actions[EVENT_OPS] = {
        [EVENT_CREATE] = "created",
        [EVENT_PAUSE] = "paused",
        [EVENT_RESUME] = "resumed",
        [EVENT_STOP] = "stopped",
        [EVENT_KILL] = "killed",
        [EVENT_CONTINUE] = "continued",
        [EVENT_RETRY] = "trial retried",
        [EVENT_SCALE] = "scaled",
        [EVENT_LABEL] = "labelled",
        [EVENT_ARCHIVE] = "archived",
        [EVENT_EXCLUDE] = "excluded a machine",
    };

    if (!actions[e->op])
        return;
    s->last_action.what = actions[e->op];
    s->last_action.undone = e->off;
    s->last_action.time = e->time;
    state_set_text (&s->last_action.by, e->by);
}

/* ---- conditions ---- */

static void note_condition (struct sweep_trial *t, enum life_event_kind kind, double time,
                            enum condition_reason reason, const char *message)
{
    conditions_apply (&t->conditions, &(struct life_event){ kind, time, reason, message });
}

static double seconds_of (const struct event *e)
{
    return isfinite (e->seconds) && e->seconds > 0 ? e->seconds : 0;
}

/* The log has no event for the start of an attempt: it started before the first event about it. */
static void note_start (struct sweep_trial *t, double time)
{
    if (t->conditions.last != CONDITION_RUNNING)
        note_condition (t, LIFE_STARTED, time, REASON_ATTEMPT_STARTED, NULL);
}

/* Note a condition of all open trials. */
static void note_open (struct sweep *s, const struct event *e, enum life_event_kind kind,
                       enum condition_reason reason)
{
    const struct life_event event = { kind, e->time, reason, e->why };

    conditions_apply (&s->conditions, &event);
    for (long i = 0; i < s->nopen; i++)
        note_condition (sweep_trial (s, s->open[i]), kind, e->time, reason, e->why);
}

static void note_result_condition (const struct sweep *s, struct sweep_trial *t,
                                   const struct event *e)
{
    if (t->stopped)
        note_condition (t, LIFE_SUCCEEDED, e->time, REASON_STOPPED_EARLY, NULL);
    else if (t->length >= s->exp->search->config.max_length)
        note_condition (t, LIFE_SUCCEEDED, e->time, e->cause ?: REASON_TRAINING_COMPLETED, NULL);
    else
        note_condition (t, LIFE_SUSPENDED, e->time, REASON_RUNG_REACHED, NULL);
}

/* Trials with a result have succeeded; the others may be continued. */
static void note_end (struct sweep *s, const struct event *e)
{
    for (long i = 1; i <= s->ntrials; i++) {
        struct sweep_trial *t = sweep_trial (s, i);
        if (t->length > 0)
            note_condition (t, LIFE_SUCCEEDED, e->time, REASON_SEARCH_ENDED, NULL);
        else
            note_condition (t, LIFE_SUSPENDED, e->time, REASON_EXPERIMENT_ENDED, NULL);
    }
}

/* Note the conditions that follow from requests for all trials, and from the end of the search. */
static void note_request (struct sweep *s, const struct event *e)
{
    if (e->op == EVENT_PAUSE)
        note_open (s, e, LIFE_SUSPENDED, REASON_EXPERIMENT_PAUSED);
    else if (e->op == EVENT_STOP || e->op == EVENT_KILL)
        note_open (s, e, LIFE_SUSPENDED, REASON_EXPERIMENT_STOPPED);
    else if (e->op == EVENT_RESUME)
        note_open (s, e, LIFE_RESUMED, REASON_EXPERIMENT_RESUMED);
    else if (e->op == EVENT_CONTINUE)
        note_open (s, e, LIFE_RESUMED, REASON_CONTINUED);
    else if (e->op == EVENT_END)
        note_end (s, e);
}

/* ---- create and begin ---- */

static enum applied apply_create (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct experiment *exp = s->exp;

    if (s->searcher)
        return APPLY_DONE;
    if (e->version != LOG_VERSION) {
        errno = EBADMSG;
        return errorf (err,
                       "%s: written by another version of dl (the decision log "
                       "has format %lld, this dl reads format %d)",
                       s->dir ? s->dir : ".", (long long)e->version, LOG_VERSION);
    }
    exp->search->seed = e->seed;
    exp->search->config.seed = (uint64_t)exp->search->seed;
    state_set_text (&exp->dir, e->dir ? e->dir : ".");
    state_set_text (&exp->fork->experiment, e->source);
    state_set_text (&s->id, e->id);
    state_set_text (&s->logged_digest, e->digest);
    state_set_text (&s->code, e->code);
    state_set_text (&s->root, e->root);
    state_set_text (&s->provenance, e->provenance);
    exp->fork->trial = (long)e->from;
    exp->fork->length = e->from_length;
    known_points_read (exp, e->json);
    s->searcher = searcher_create (&exp->search->config, exp->space->params, exp->space->nparams);
    if (!s->searcher)
        return errorf (err, "cannot create the searcher: %s", strerror (errno));
    s->created = e->time;
    conditions_apply (&s->conditions,
                      &(struct life_event){ LIFE_CREATED, e->time, REASON_CREATED, NULL });
    return APPLY_DONE;
}

static void add_trial (struct sweep *s, const struct event *e)
{
    size_t n = s->exp->space->nparams;
    double *x = xcalloc (n + 1, sizeof (*x));

    for (size_t i = 0; i < n; i++)
        x[i] = e->x[i];
    XGROW (s->trials, (size_t)s->ntrials);
    s->trials[s->ntrials] = (struct sweep_trial){
        .x = x,
        .metric = NAN,
        .report = NAN,
        .begin_time = e->time,
        .end_time = NAN,
        .from = (long)e->from,
        .from_length = e->from_length,
    };
    s->ntrials++;
    note_condition (&s->trials[s->ntrials - 1], LIFE_CREATED, e->time, REASON_CREATED, NULL);
    state_add_history (s, s->ntrials);
}

static enum applied apply_begin (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct search_op op = {
        .trial = (long)e->trial,
        .fresh = e->trial == s->ntrials + 1,
        .length = e->length,
        .from = (long)e->from,
        .from_length = e->from_length,
    };
    struct sweep_trial *t;

    if ((op.fresh && e->nx != s->exp->space->nparams)
        || (searcher_begin (s->searcher, &op, e->x) < 0 && searcher_refused ()))
        return state_damaged (err, "a segment begins that the searcher cannot begin");
    if (op.fresh)
        add_trial (s, e);
    t = sweep_trial (s, op.trial);
    t->target = op.length;
    t->state = TRIAL_OPEN;
    t->tries.lost = 0;
    t->spent = 0;
    state_set_text (&t->owner, e->owner);
    note_condition (t, LIFE_REVIVED, e->time, REASON_CONTINUED, NULL);
    note_condition (t, LIFE_RESUMED, e->time, REASON_PROMOTED, NULL);
    if (e->owner)
        note_start (t, e->time);
    state_add_open (s, op.trial);
    return APPLY_DONE;
}

/* ---- the end of an attempt ---- */

/* The trial, if this is its current attempt, else NULL: events of a fenced attempt come too late.
 */
static struct sweep_trial *live_trial (struct sweep *s, const struct event *e)
{
    struct sweep_trial *t = sweep_trial (s, (long)e->trial);

    return t && t->state == TRIAL_OPEN && e->attempt == t->over + 1 ? t : NULL;
}

static void attempt_over (struct sweep *s, struct sweep_trial *t, const struct event *e)
{
    t->over = (long)e->attempt;
    note_start (t, e->time - seconds_of (e));
    t->spent += seconds_of (e);
    t->seconds += seconds_of (e);
    if (t->length > 0)
        s->pace.seconds += seconds_of (e);
    state_set_text (&t->owner, NULL);
    if (e->host)
        state_set_text (&t->host, e->host);
    if (e->gpus)
        state_set_text (&t->gpus, e->gpus);
}

/* The segment has ended for good: tell the searcher what all attempts at it cost. */
static void close_segment (struct sweep *s, struct sweep_trial *t, enum sweep_trial_state state)
{
    long n = trial_number (s, t);

    t->state = state;
    state_remove_open (s, n);
    searcher_spend (s->searcher, n, t->spent);
    state_add_history (s, -n);
}

static void add_milestone (const struct sweep *s, struct sweep_trial *t, const struct event *e)
{
    size_t n = sweep_metrics (s);
    struct milestone *m;

    XGROW (t->milestones, t->nmilestones);
    m = &t->milestones[t->nmilestones++];
    t->metric = e->metric;
    *m = (struct milestone){ t->length, t->over, e->metric, NULL,
                             e->stopped && seconds_of (e) == 0 };
    if (n > 1)
        m->values = xcalloc (n, sizeof (*m->values));
    for (size_t i = 0; n > 1 && i < n; i++)
        m->values[i] = i < e->nmetrics ? e->metrics[i] : NAN;
}

/* A result must be at the segment's target, or before it if the searcher has stopped the trial. */
static bool result_fits (const struct sweep *s, const struct sweep_trial *t, const struct event *e)
{
    if (!e->stopped)
        return e->length == t->target;
    return e->length >= 1 && e->length < t->target
           && searcher_stops (s->searcher, trial_number (s, t));
}

bool sweep_takes_result (struct sweep *s, const struct event *e)
{
    const struct sweep_trial *t = live_trial (s, e);

    return t && result_fits (s, t, e);
}

static int observe_length (struct sweep *s, const struct sweep_trial *t)
{
    return searcher_observe (s->searcher, trial_number (s, t), t->length,
                             trial_values (t) ?: &t->metric);
}

static void set_length (struct sweep *s, struct sweep_trial *t, int64_t length)
{
    if (t->length == 0)
        s->pace.seconds += t->seconds;
    s->pace.length += (double)(length - t->length);
    t->length = length;
}

/* Whether the result of the trial's point, as views show it, reaches the goal: it must be complete,
 * and at the length where points are compared.
 */
static bool trial_reaches_goal (const struct sweep *s, const struct sweep_trial *t)
{
    long point = trial_point (s, trial_number (s, t));
    struct sweep_result r = point_result_at (s, point, t->length);

    /* check this first, because comparing takes longer */
    if (!sweep_is_goal (s, r.value))
        return false;
    r = point_result (s, point, 0);
    return r.compared && sweep_is_goal (s, r.value)
           && (s->exp->search->config.repeats <= 1 || r.n == s->exp->search->config.repeats);
}

static enum applied apply_result (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = sweep_trial (s, (long)e->trial);

    if (!sweep_takes_result (s, e))
        return APPLY_DONE;
    attempt_over (s, t, e);
    t->stopped = e->stopped;
    t->ended = e->ended;
    t->memory = 0;
    set_length (s, t, e->length);
    t->end_time = e->time;
    note_result_condition (s, t, e);
    s->nresults++;
    host_succeeds (s, e->host);
    add_milestone (s, t, e);
    close_segment (s, t, TRIAL_PAUSED);
    s->reached |= trial_reaches_goal (s, t);
    if (observe_length (s, t) < 0)
        return state_damaged (err, "a result that the searcher did not wait for");
    return APPLY_DONE;
}

/* "fail", "lost" and "park" end an attempt; the segment stays open. */
static struct sweep_trial *apply_attempt_end (struct sweep *s, const struct event *e)
{
    struct sweep_trial *t = live_trial (s, e);

    if (!t)
        return NULL;
    attempt_over (s, t, e);
    if (e->why) {
        state_set_text (&t->why, e->why);
        t->cause = e->cause;
    }
    return t;
}

/* The next attempts train another point; a trial that has a result keeps its point. */
static int move_trial (struct sweep *s, struct sweep_trial *t, const struct event *e,
                       struct slurmdl_error *err)
{
    if (e->nx == 0 || t->length > 0)
        return 0;
    if (e->nx != s->exp->space->nparams
        || searcher_move (s->searcher, trial_number (s, t), e->x) < 0)
        return state_damaged (err, "a trial goes on where there is no point");
    if (!t->began) {
        t->began = xmemdup (t->x, e->nx * sizeof (*t->began));
    }
    memcpy (t->x, e->x, e->nx * sizeof (*t->x));
    trial_forget_hparams (t);
    return 0;
}

/* Whether the user's own file allows so much memory, whoever published the event. */
static bool memory_is_allowed (const struct sweep *s, int64_t memory)
{
    return memory > 0 && memory <= s->exp->resources->memory_most;
}

/* A trial that ran out of memory gets more from now on, and so do all others. */
static void raise_memory (struct sweep *s, struct sweep_trial *t, int64_t memory)
{
    t->memory = memory;
    if (memory > s->memory)
        s->memory = memory;
}

/* Whether the files that the attempt resumed from may be the reason: it failed by itself, not
 * because of a signal from outside, a hang or its node.
 */
static bool files_may_be_broken (const struct event *e)
{
    static const int from_outside[] = { SIGKILL, SIGTERM, SIGINT, SIGHUP };

    switch (e->cause) {
    case REASON_NONE:
    case REASON_ATTEMPT_FAILED:
    case REASON_RANK_DIED:
        for (size_t i = 0; i < sizeof (from_outside) / sizeof (*from_outside); i++)
            if (e->status == 128 + from_outside[i])
                return false;
        return true;
    case REASON_OUT_OF_MEMORY:
    case REASON_OUT_OF_GPU_MEMORY:
    case REASON_METRIC_MISSING:
        return true;
    default:
        return false;
    }
}

static void add_failed (struct sweep_trial *t, const struct event *e)
{
    XGROW (t->failed, t->nfailed);
    t->failed[t->nfailed++] = (struct failed_attempt){ t->over, files_may_be_broken (e) };
}

static enum applied apply_fail (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = apply_attempt_end (s, e);

    if (!t)
        return APPLY_DONE;
    note_condition (t, LIFE_BROKEN, e->time, e->cause ?: REASON_ATTEMPT_FAILED, e->why);
    if (!e->free)
        add_failed (t, e);
    if (move_trial (s, t, e, err) < 0)
        return APPLY_FAILED;
    if (memory_is_allowed (s, e->memory))
        raise_memory (s, t, e->memory);
    t->ooms += e->memory > 0 || e->nx > 0;
    tries_add (&t->tries, (struct try_end){ .progress = e->progress, .free = e->free }, 0);
    if (!e->free)
        host_fails (s, e->host, trial_number (s, t));
    fault_note (s, e);
    return APPLY_DONE;
}

static enum applied apply_lost (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = apply_attempt_end (s, e);

    (void)err;
    if (!t)
        return APPLY_DONE;
    note_condition (t, LIFE_BROKEN, e->time, e->cause ?: REASON_WORKER_LOST, e->why);
    tries_add (&t->tries, (struct try_end){ .progress = e->progress, .free = true }, 0);
    return APPLY_DONE;
}

static enum applied apply_park (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = apply_attempt_end (s, e);

    (void)err;
    if (t)
        note_condition (t, LIFE_BROKEN, e->time, e->cause ?: REASON_PARKED, e->why);
    return APPLY_DONE;
}

static enum applied apply_reject (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = apply_attempt_end (s, e);

    if (!t)
        return APPLY_DONE;
    t->end_time = e->time;
    note_condition (t, LIFE_FAILED, e->time, REASON_POINT_REJECTED, e->why);
    close_segment (s, t, TRIAL_REJECTED);
    if (searcher_reject (s->searcher, trial_number (s, t)) < 0)
        return state_damaged (err, "a point is rejected that the searcher ended");
    return APPLY_DONE;
}

static enum applied apply_exit (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = sweep_trial (s, (long)e->trial);

    if (!t || t->state != TRIAL_OPEN)
        return APPLY_DONE;
    if (e->why) {
        state_set_text (&t->why, e->why);
        t->cause = e->cause;
    }
    if (memory_is_allowed (s, e->memory))
        s->memory = s->memory_limit = e->memory;
    t->memory = 0;
    t->end_time = e->time;
    note_condition (t, LIFE_FAILED, e->time, e->cause ?: REASON_GIVEN_UP, t->why);
    close_segment (s, t, TRIAL_FAILED);
    if (searcher_exit (s->searcher, trial_number (s, t)) < 0)
        return state_damaged (err, "the end of a trial that the searcher ended");
    return APPLY_DONE;
}

/* Ignore lengths that were reported before: an attempt that starts over repeats them. */
static enum applied apply_report (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    struct sweep_trial *t = live_trial (s, e);

    (void)err;
    if (!t || e->length <= t->reported || e->length > t->target)
        return APPLY_DONE;
    note_start (t, e->time);
    t->reported = e->length;
    t->report = e->metric;
    searcher_report (s->searcher, (long)e->trial, e->length, e->metric);
    return APPLY_DONE;
}

/* ---- any event ---- */

static enum applied apply_expire (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)err;
    /* max_hours may have been raised since then */
    s->expired |=
        s->exp->search->max_hours > 0 && e->time >= s->created + s->exp->search->max_hours * 3600;
    return APPLY_DONE;
}

/* For events that change nothing but the state of the experiment. */
static enum applied apply_wish (struct sweep *s, const struct event *e, struct slurmdl_error *err)
{
    (void)s;
    (void)e;
    (void)err;
    return APPLY_DONE;
}

static enum applied (*const apply_by_op[EVENT_OPS]) (struct sweep *s, const struct event *e,
                                                     struct slurmdl_error *err) = {
    [EVENT_CREATE] = apply_create, [EVENT_BEGIN] = apply_begin,
    [EVENT_REPORT] = apply_report, [EVENT_RESULT] = apply_result,
    [EVENT_FAIL] = apply_fail,     [EVENT_LOST] = apply_lost,
    [EVENT_PARK] = apply_park,     [EVENT_REJECT] = apply_reject,
    [EVENT_EXIT] = apply_exit,     [EVENT_PAUSE] = apply_pause,
    [EVENT_RESUME] = apply_resume, [EVENT_STOP] = apply_wish,
    [EVENT_KILL] = apply_wish,     [EVENT_CONTINUE] = apply_continue,
    [EVENT_RETRY] = apply_retry,   [EVENT_EXPIRE] = apply_expire,
    [EVENT_END] = apply_wish,      [EVENT_SUBMIT] = apply_submit,
    [EVENT_SCALE] = apply_scale,   [EVENT_EXCLUDE] = apply_exclude,
    [EVENT_LABEL] = apply_label,   [EVENT_ARCHIVE] = apply_archive,
    [EVENT_START] = apply_wish,    [EVENT_DONE] = apply_wish,
};

/* Events that make no sense in the present state came too late and are ignored. */
int sweep_apply (const struct event *e, void *sweep, struct slurmdl_error *err)
{
    struct sweep *s = sweep;
    enum applied applied;

    if (!s->searcher && e->op != EVENT_CREATE)
        return state_damaged (err, "the first entry is not \"create\"");
    s->changed = e->time;
    if (!sweep_allows (s->state, e->op))
        return 0;
    s->changes += e->op != EVENT_LABEL && e->op != EVENT_ARCHIVE && e->op != EVENT_SUBMIT
                  && e->op != EVENT_SCALE;
    if ((applied = apply_by_op[e->op](s, e, err)) != APPLY_DONE)
        return applied == APPLY_FAILED ? -1 : 0;
    note_request (s, e);
    s->state = sweep_next_state (s->state, e->op);
    if (e->op == EVENT_STOP || e->op == EVENT_KILL)
        s->asked = e->time;
    if (e->op == EVENT_END && e->state && !strcmp (e->state, "failed"))
        s->state = SWEEP_FAILED;
    if (e->op == EVENT_END && e->state && !strcmp (e->state, "partial"))
        s->state = SWEEP_PARTIAL;
    request_note (s, e);
    return 0;
}
