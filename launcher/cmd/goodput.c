/* SPDX-License-Identifier: Apache-2.0 */
/* dl goodput: how the time of jobs and trials was used, from files alone. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/progress/progress.h"
#include "launcher/report/report.h"
#include "launcher/sweep/event.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/peer.h"
#include "launcher/sweep/table.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/sys/user.h"
#include "runtime/base/error.h"
#include "runtime/slurmdl.h"

/* Times are whole ms since the first entry of the log, so that sums are exact. */

enum time_class {
    TIME_QUEUED,
    TIME_STARTING,
    TIME_TRAINING,
    TIME_SAVING,
    TIME_RESTORING,
    TIME_REPEATED,
    TIME_IDLE,
    TIME_UNKNOWN,
    TIME_CLASSES
};

static const char *const class_names[TIME_CLASSES] = {
    "queued", "starting", "training", "saving", "restoring", "repeated", "idle", "unknown",
};

struct used_time {
    int64_t ms[TIME_CLASSES];
};

static void add_time (struct used_time *to, const struct used_time *from)
{
    for (int i = 0; i < TIME_CLASSES; i++)
        to->ms[i] += from->ms[i];
}

static int64_t allocated_ms (const struct used_time *u)
{
    int64_t sum = 0;

    for (int i = 0; i < TIME_CLASSES; i++)
        sum += i == TIME_QUEUED ? 0 : u->ms[i];
    return sum;
}

/* ---- classify the time of an attempt by what its program logged ---- */

enum { NAME_MAX_BYTES = 64 };

/* Do not compare the clocks of a worker and its trainer if they differ by more. */
enum { CLOCKS_MS = 1000 };

struct logged_name {
    char name[NAME_MAX_BYTES];
    int64_t top;  /* highest step so far; INT64_MIN: none */
    int64_t mark; /* top when the program last began or was restored */
};

struct logged_row {
    int64_t ms, step;
    size_t order, name;
    long attempt;
};

/* The program saved or restored; TIME_CLASSES: it continues from an earlier step. */
struct logged_pause {
    int64_t begin, end;
    enum time_class what;
};

/* What a trial logged, and which part of it the current attempt logged. */
struct trial_reading {
    double created;
    long attempt;
    struct logged_name *names;
    size_t nnames, last;
    struct logged_row *all; /* in the order of attempts */
    size_t nall;
    struct logged_row *rows; /* those of the attempt, in 'all' */
    size_t nrows;
    struct logged_pause *pauses;
    size_t npauses;
    bool counts_lines; /* steps are line numbers, which start at 1 in each attempt */
};

static int64_t ms_of (double seconds)
{
    return isfinite (seconds) && fabs (seconds) < 1e14 ? llround (seconds * 1000) : 0;
}

static size_t name_number (struct trial_reading *t, const char *name)
{
    for (size_t i = 0; i < t->nnames; i++) {
        size_t at = (t->last + 1 + i) % t->nnames; /* programs log metrics in turn */
        if (!strcmp (t->names[at].name, name))
            return t->last = at;
    }
    XGROW (t->names, t->nnames);
    t->names[t->nnames] = (struct logged_name){ .top = INT64_MIN, .mark = INT64_MIN };
    snprintf (t->names[t->nnames].name, NAME_MAX_BYTES, "%s", name);
    return t->last = t->nnames++;
}

static int keep_row (const struct slurmdl_row *row, void *arg)
{
    struct trial_reading *t = arg;

    if (!strcmp (row->name, "epoch"))
        return 0;
    XGROW (t->all, t->nall);
    t->all[t->nall] = (struct logged_row){ ms_of (row->time - t->created), row->step, t->nall,
                                           name_number (t, row->name), row->attempt };
    t->nall++;
    return 0;
}

static int keep_pause (const struct slurmdl_record *r, void *arg)
{
    struct trial_reading *t = arg;
    struct logged_pause p = { .end = ms_of (r->time - t->created) };
    json_t *o;

    if (r->kind != SLURMDL_EVENT)
        return 0;
    if (!strcmp (r->name, "saved"))
        p.what = TIME_SAVING;
    else if (!strcmp (r->name, "restored"))
        p.what = TIME_RESTORING;
    else if (!strcmp (r->name, "resumed"))
        p.what = TIME_CLASSES;
    else
        return 0;
    o = json_loadb (r->data, r->size, 0, NULL);
    p.begin = p.end - ms_of (fmax (0, json_number_value (json_object_get (o, "seconds"))));
    json_decref (o);
    XGROW (t->pauses, t->npauses);
    t->pauses[t->npauses++] = p;
    return 0;
}

static int row_by_time (const void *a, const void *b)
{
    const struct logged_row *x = a, *y = b;

    if (x->ms != y->ms)
        return x->ms < y->ms ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int pause_by_end (const void *a, const void *b)
{
    const struct logged_pause *x = a, *y = b;

    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* With a single step, the time before it may be start or training: nobody can tell. */
static bool has_two_steps (const struct trial_reading *t)
{
    for (size_t i = 1; i < t->nrows; i++)
        if (t->rows[i].step != t->rows[0].step)
            return true;
    return false;
}

static void mark_steps (struct trial_reading *t)
{
    for (size_t i = 0; i < t->nnames; i++)
        t->names[i].mark = t->names[i].top;
}

static enum time_class class_of_row (struct trial_reading *t, const struct logged_row *row,
                                     bool first)
{
    struct logged_name *n = &t->names[row->name];
    bool again = row->step <= n->mark;

    n->top = row->step > n->top ? row->step : n->top;
    if (first)
        return has_two_steps (t) ? TIME_STARTING : TIME_UNKNOWN;
    return !again ? TIME_TRAINING : t->counts_lines ? TIME_UNKNOWN : TIME_REPEATED;
}

/* Add the time from *at to 'to' to the class 'what', except the pauses in it. */
static void spend_until (struct trial_reading *t, struct used_time *u, int64_t *at, int64_t to,
                         enum time_class what)
{
    for (size_t i = 0; i < t->npauses && *at < to; i++) {
        const struct logged_pause *p = &t->pauses[i];
        int64_t begin = p->begin > *at ? p->begin : *at;
        int64_t end = p->end < to ? p->end : to;
        if (p->what == TIME_CLASSES || end <= begin)
            continue;
        u->ms[what] += begin - *at;
        u->ms[p->what] += end - begin;
        *at = end;
    }
    if (*at < to) {
        u->ms[what] += to - *at;
        *at = to;
    }
}

/* Return whether the clocks of the worker and the trainer agree.  If they do not, shift the
 * trainer's times so that its first row or pause coincides with the begin of the attempt.
 */
static bool join_clocks (struct trial_reading *t, int64_t begin, int64_t end)
{
    int64_t first = t->nrows ? t->rows[0].ms : end;
    int64_t last = t->nrows ? t->rows[t->nrows - 1].ms : begin;
    int64_t by;

    if (t->npauses && t->pauses[0].begin < first)
        first = t->pauses[0].begin;
    if (t->npauses && t->pauses[t->npauses - 1].end > last)
        last = t->pauses[t->npauses - 1].end;
    if (first >= begin - CLOCKS_MS && last <= end + CLOCKS_MS)
        return true;
    by = begin - first;
    for (size_t i = 0; i < t->nrows; i++)
        t->rows[i].ms += by;
    for (size_t i = 0; i < t->npauses; i++) {
        t->pauses[i].begin += by;
        t->pauses[i].end += by;
    }
    return false;
}

/* If the program went back to an earlier step before 'ms', the work since the last row is lost, and
 * the steps that follow repeat earlier ones.
 */
static void go_back (struct trial_reading *t, struct used_time *u, size_t *next, int64_t *at,
                     int64_t ms)
{
    for (; *next < t->npauses && t->pauses[*next].end <= ms; ++*next) {
        const struct logged_pause *p = &t->pauses[*next];
        if (p->what != TIME_CLASSES)
            continue;
        mark_steps (t);
        spend_until (t, u, at, p->end, TIME_UNKNOWN);
    }
}

static void spend_attempt (struct trial_reading *t, bool stuck, int64_t begin, int64_t end,
                           struct used_time *u)
{
    size_t next = 0;
    int64_t at = begin;
    bool agree;

    if (t->nrows)
        qsort (t->rows, t->nrows, sizeof (*t->rows), row_by_time);
    if (t->npauses)
        qsort (t->pauses, t->npauses, sizeof (*t->pauses), pause_by_end);
    agree = join_clocks (t, begin, end);
    mark_steps (t);
    for (size_t i = 0; i < t->nrows; i++) {
        const struct logged_row *row = &t->rows[i];
        enum time_class what;
        if (i > 0)
            go_back (t, u, &next, &at, row->ms < end ? row->ms : end);
        what = class_of_row (t, row, i == 0);
        spend_until (t, u, &at, row->ms < end ? row->ms : end, what);
    }
    spend_until (t, u, &at, end, stuck && agree && t->nrows > 0 ? TIME_IDLE : TIME_UNKNOWN);
}

/* ---- jobs and trials ---- */

enum row_kind { ROW_JOB, ROW_TRIAL, ROW_ATTEMPT, ROW_STEP, ROW_ALL };

static const char *const row_kinds[] = { "job", "trial", "attempt", "step", "all" };

struct goodput_row {
    enum row_kind kind;
    char name[64];
    double gpus; /* allocated to it; NaN: not known */
    struct used_time used;
};

struct goodput {
    const struct sweep *s; /* NULL for a flow */
    double created;        /* s since the epoch */
    double gpus;           /* GPUs of a trial; NaN: not known */
    struct report report;
    struct peer_info *peers; /* sorted by slot, then by time */
    long npeers;
    struct used_time *attempts; /* one for each attempt of the report */
    size_t *first, *next;       /* a list of each trial's attempts: index + 1, 0 ends it */
    struct goodput_row *rows;
    size_t nrows;
    struct slurmdl_error damage;
};

static int64_t since_created (const struct goodput *g, double time)
{
    int64_t ms = ms_of (time - g->created);

    return ms > 0 ? ms : 0;
}

static struct goodput_row *add_row (struct goodput *g, enum row_kind kind, const char *name)
{
    struct goodput_row *row;

    XGROW (g->rows, g->nrows);
    row = &g->rows[g->nrows++];
    *row = (struct goodput_row){ .kind = kind, .gpus = g->gpus };
    snprintf (row->name, sizeof (row->name), "%s", name);
    return row;
}

static int peer_by_slot (const void *a, const void *b)
{
    const struct peer_info *x = a, *y = b;
    int by = strverscmp (x->slot, y->slot);

    return by ? by : (x->begin > y->begin) - (x->begin < y->begin);
}

/* The worker process that had a slot at that time; NULL: not known. */
static const struct peer_info *process_at (const struct goodput *g, const char *slot, int64_t ms)
{
    const struct peer_info *found = NULL;

    for (long i = 0; i < g->npeers; i++)
        if (!strcmp (g->peers[i].slot, slot) && g->peers[i].begin > 0
            && since_created (g, g->peers[i].begin) <= ms)
            found = &g->peers[i];
    return found;
}

/* Return when an attempt ended.  If its worker did not report that, assume that the attempt ended
 * no later than the worker.  If the attempt still runs, use its newest row if that is later than
 * the worker's last heartbeat.
 */
static int64_t end_of_attempt (const struct goodput *g, const struct report_attempt *a,
                               const struct trial_reading *t)
{
    int64_t begin = ms_of (a->begin), end = ms_of (a->end);
    const struct peer_info *p;

    if (a->told || !(p = process_at (g, g->report.slots.list[a->slot], begin)))
        return end;
    if (a->how == ATTEMPT_RUNNING || end > since_created (g, p->end))
        end = since_created (g, p->end);
    for (size_t i = 0; i < t->nrows && a->how == ATTEMPT_RUNNING; i++)
        if (t->rows[i].ms > end)
            end = t->rows[i].ms;
    return end > begin ? end : begin;
}

static void select_attempt (struct goodput *g, struct trial_reading *t, const char *folder)
{
    struct slurmdl_error why = { "" };
    char dir[PATH_MAX];
    size_t first = t->rows ? (size_t)(t->rows - t->all) + t->nrows
                           : 0; /* attempts are selected in ascending order */

    while (first < t->nall && t->all[first].attempt < t->attempt)
        first++;
    t->rows = t->all + first;
    for (t->nrows = 0; first + t->nrows < t->nall && t->rows[t->nrows].attempt == t->attempt;)
        t->nrows++;
    t->npauses = 0;
    snprintf (dir, sizeof (dir), "%.4000s/a.%ld", folder, t->attempt);
    if (slurmdl_records_read_dir (dir, keep_pause, t, &why) < 0)
        errorf (&g->damage, "%s", why.text);
}

static bool counts_lines (const struct experiment *e)
{
    bool has = false;

    for (char **p = e->metric->patterns; p && *p; p++)
        has |= strstr (*p, "{step}") != NULL;
    return e->metric->patterns && *e->metric->patterns && !has;
}

static void read_logged_rows (struct goodput *g, struct trial_reading *t, const char *folder)
{
    struct slurmdl_error why = { "" };

    if (slurmdl_trial_read (folder, keep_row, t, &why) < 0)
        errorf (&g->damage, "%s", why.text);
}

static void reading_free (struct trial_reading *t)
{
    free (t->names);
    free (t->all);
    free (t->pauses);
}

/* Whether the attempt ended because it made no progress any more. */
static bool is_stuck (enum condition_reason reason)
{
    return reason == REASON_HANG || reason == REASON_RANK_STOPPED || reason == REASON_NODE_LOST;
}

/* Classify the time of a trial's attempts in their order, which is that of the log. */
static void spend_trial (struct goodput *g, long index)
{
    struct report *r = &g->report;
    struct trial_reading t = { .created = g->created, .counts_lines = counts_lines (g->s->exp) };
    char dir[PATH_MAX];

    snprintf (dir, sizeof (dir), "%s/trials/%04ld", g->s->dir, r->trials[index].number);
    read_logged_rows (g, &t, dir);
    for (size_t i = g->first[index]; i; i = g->next[i - 1]) {
        const struct report_attempt *a = &r->attempts[i - 1];
        t.attempt = a->number;
        select_attempt (g, &t, dir);
        spend_attempt (&t, is_stuck (a->reason), ms_of (a->begin), end_of_attempt (g, a, &t),
                       &g->attempts[i - 1]);
    }
    reading_free (&t);
}

/* ---- jobs ---- */

/* When the job of a slot was submitted, by its submitter's clock; -1: it was not submitted. */
static int64_t submitted_at (const struct goodput *g, const char *slot)
{
    struct peer_info p = { .gone = false };

    snprintf (p.slot, sizeof (p.slot), "%s", slot);
    for (size_t i = 0; i < g->s->nsubmits; i++)
        if (worker_is_of (&p, &g->s->submits[i]))
            return since_created (g, g->s->submits[i].time);
    return -1;
}

/* Add the time that a slot was queued, and set '*alive' to the time that it was allocated.  The
 * worker processes peers[first] to peers[end - 1] had the slot one after another.
 */
static void spend_slot (const struct goodput *g, long first, long end, struct used_time *u,
                        int64_t *alive)
{
    int64_t until = submitted_at (g, g->peers[first].slot);

    *alive = 0;
    for (long i = first; i < end; i++) {
        const struct peer_info *p = &g->peers[i];
        int64_t begin = since_created (g, p->begin), stop = since_created (g, p->end);
        if (p->begin <= 0 || p->end <= 0)
            continue;
        begin = until > begin ? until : begin;
        if (until >= 0 && i > first && p->requeues == g->peers[i - 1].requeues)
            *alive += begin - until;
        else if (until >= 0)
            u->ms[TIME_QUEUED] += begin - until;
        if (i + 1 < end && stop > since_created (g, g->peers[i + 1].begin))
            stop = since_created (g, g->peers[i + 1].begin);
        until = stop > begin ? stop : begin;
        *alive += until - begin;
    }
}

/* Add the time of all attempts of a slot.  Returns the ms from the start of the first one to the
 * end of the last one.
 */
static int64_t spend_attempts_of (const struct goodput *g, const char *slot, struct used_time *u)
{
    const struct report *r = &g->report;
    int64_t from = INT64_MAX, to = 0;

    for (size_t i = 0; i < r->nattempts; i++) {
        const struct report_attempt *a = &r->attempts[i];
        int64_t begin = ms_of (a->begin), end = begin + allocated_ms (&g->attempts[i]);
        if (strcmp (r->slots.list[a->slot], slot))
            continue;
        add_time (u, &g->attempts[i]);
        from = begin < from ? begin : from;
        to = end > to ? end : to;
    }
    return to > from ? to - from : 0;
}

static void add_job (struct goodput *g, const char *slot, long first, long end)
{
    struct goodput_row *row = add_row (g, ROW_JOB, slot);
    int64_t span, alive = 0;
    double nodes = (double)g->s->exp->resources->nodes;

    if (nodes > 0)
        row->gpus *= (double)experiment_job_nodes (g->s->exp) / nodes;
    span = spend_attempts_of (g, slot, &row->used);
    if (end > first)
        spend_slot (g, first, end, &row->used, &alive);
    if (alive == 0)
        alive = span; /* its workers left no file */
    if (alive > allocated_ms (&row->used))
        row->used.ms[TIME_IDLE] += alive - allocated_ms (&row->used);
}

/* List at most so many tasks of an array that have not started. */
enum { TASKS_LISTED = 4096 };

static bool slot_has_begun (const struct goodput *g, const char *slot)
{
    size_t n = strlen (slot);

    for (long i = 0; i < g->npeers; i++)
        if (!strncmp (g->peers[i].slot, slot, n)
            && (!g->peers[i].slot[n] || g->peers[i].slot[n] == '.'))
            return true;
    return false;
}

/* When the experiment last showed a sign of life. */
static int64_t last_sign_of_life (const struct goodput *g)
{
    int64_t last = since_created (g, g->s->changed);

    for (long i = 0; i < g->npeers; i++)
        if (since_created (g, g->peers[i].end) > last)
            last = since_created (g, g->peers[i].end);
    return last;
}

static void add_waiting_tasks (struct goodput *g, const struct submit *a)
{
    int64_t from = since_created (g, a->time), to = last_sign_of_life (g);
    char slot[64];

    for (long n = 0; n < TASKS_LISTED && a->first >= 0 && n <= a->last - a->first; n++) {
        if (a->first > 0)
            snprintf (slot, sizeof (slot), "%.40s_%ld", a->job, a->first + n);
        else
            snprintf (slot, sizeof (slot), "%.40s", a->job);
        if (!slot_has_begun (g, slot))
            add_row (g, ROW_JOB, slot)->used.ms[TIME_QUEUED] = to > from ? to - from : 0;
    }
}

static void add_jobs (struct goodput *g)
{
    const struct words *slots = &g->report.slots;

    for (long i = 0, end; i < g->npeers; i = end) {
        for (end = i + 1; end < g->npeers && !strcmp (g->peers[end].slot, g->peers[i].slot);)
            end++;
        add_job (g, g->peers[i].slot, i, end);
    }
    for (size_t k = 0; k < slots->n; k++) {
        bool listed = false;
        for (long i = 0; i < g->npeers && !listed; i++)
            listed = !strcmp (g->peers[i].slot, slots->list[k]);
        if (!listed)
            add_job (g, slots->list[k], 0, 0);
    }
    for (size_t i = 0; i < g->s->nsubmits; i++)
        add_waiting_tasks (g, &g->s->submits[i]);
}

/* ---- trials ---- */

/* The ms between 'from' and 'to' in which the experiment was not paused or stopped. */
static int64_t wanted_ms (const struct report *r, int64_t from, int64_t to)
{
    int64_t sum = 0, at = from;
    bool wanted = true;

    for (size_t i = 0; i < r->nrequests; i++) {
        const struct report_request *q = &r->requests[i];
        int64_t when = ms_of (q->time);
        bool off =
            !strcmp (q->what, "pause") || !strcmp (q->what, "stop") || !strcmp (q->what, "kill");
        if (!off && strcmp (q->what, "resume") && strcmp (q->what, "continue"))
            continue;
        if (when >= to)
            break;
        if (wanted && when > at)
            sum += when - at;
        at = when > at ? when : at;
        wanted = !off;
    }
    return sum + (wanted && to > at ? to - at : 0);
}

/* Add the row of a trial, and with 'each' those of its attempts. */
static void add_trial_row (struct goodput *g, long index, bool each)
{
    const struct report *r = &g->report;
    struct used_time sum = { { 0 } };
    char name[32];

    for (size_t i = g->first[index]; i; i = g->next[i - 1]) {
        const struct report_attempt *a = &r->attempts[i - 1];
        struct used_time u = g->attempts[i - 1];
        u.ms[TIME_QUEUED] = wanted_ms (r, ms_of (a->ready), ms_of (a->begin));
        snprintf (name, sizeof (name), "%ld", a->number);
        if (each)
            add_row (g, ROW_ATTEMPT, name)->used = u;
        add_time (&sum, &u);
    }
    snprintf (name, sizeof (name), "%ld", r->trials[index].number);
    add_row (g, ROW_TRIAL, name)->used = sum;
}

/* Add the sum of the jobs.  Trials are not added: they run in these jobs. */
static void add_sum (struct goodput *g)
{
    size_t n = g->nrows;
    struct goodput_row *sum = add_row (g, ROW_ALL, "");

    sum->gpus = n > 0 ? g->rows[0].gpus : sum->gpus;
    for (size_t i = 0; i < n; i++)
        if (g->rows[i].kind == ROW_JOB)
            add_time (&sum->used, &g->rows[i].used);
}

/* Fill in the rows of an experiment, or of one trial and its attempts; 'trial' 0: all. */
static int goodput_fill (struct goodput *g, struct sweep *s, long trial, struct slurmdl_error *err)
{
    struct report *r = &g->report;

    g->s = s;
    g->created = s->created;
    g->gpus = (double)experiment_gpus (s->exp);
    if (report_fill (r, &s, 1, err) < 0)
        return -1;
    if ((g->npeers = peer_list (s->dir, &g->peers, NULL)) < 0)
        g->npeers = 0; /* no worker has started yet */
    if (g->npeers > 0)
        qsort (g->peers, (size_t)g->npeers, sizeof (*g->peers), peer_by_slot);
    g->attempts = xcalloc (r->nattempts + 1, sizeof (*g->attempts));
    g->next = xcalloc (r->nattempts + 1, sizeof (*g->next));
    g->first = xcalloc ((size_t)r->n + 1, sizeof (*g->first));
    for (size_t i = r->nattempts; i > 0; i--) {
        g->next[i - 1] = g->first[r->attempts[i - 1].trial];
        g->first[r->attempts[i - 1].trial] = i;
    }
    for (long i = 0; i < r->n; i++)
        if (trial == 0 || r->trials[i].number == trial)
            spend_trial (g, i);
    if (trial == 0)
        add_jobs (g);
    for (long i = 0; i < r->n; i++)
        if (trial == 0 || r->trials[i].number == trial)
            add_trial_row (g, i, trial > 0);
    if (trial == 0)
        add_sum (g);
    return 0;
}

/* ---- a flow: its tasks, and the jobs that ran them ---- */

struct task_attempt {
    char step[64];
    char job[64]; /* "": not in a Slurm job */
    long task, number;
    int64_t ready, begin, end;
    bool is_over;
    struct used_time used;
};

/* When a step was last started or submitted; -1: never. */
struct step_start {
    char step[64];
    int64_t ms;
};

struct flow_reading {
    struct goodput *g;
    int64_t last; /* time of the newest event */
    struct step_start *starts;
    size_t nstarts;
    struct task_attempt *attempts;
    size_t n;
};

static struct step_start *start_of_step (struct flow_reading *f, const char *step)
{
    for (size_t i = 0; i < f->nstarts; i++)
        if (!strcmp (f->starts[i].step, step))
            return &f->starts[i];
    XGROW (f->starts, f->nstarts);
    f->starts[f->nstarts] = (struct step_start){ .ms = -1 };
    snprintf (f->starts[f->nstarts].step, sizeof (f->starts->step), "%s", step);
    return &f->starts[f->nstarts++];
}

static struct task_attempt *attempt_of_step (struct flow_reading *f, const struct event *e)
{
    for (size_t i = f->n; i-- > 0;)
        if (!strcmp (f->attempts[i].step, e->step) && f->attempts[i].task == e->task
            && f->attempts[i].number == e->attempt)
            return &f->attempts[i];
    return NULL;
}

static void begin_step_attempt (struct flow_reading *f, const struct event *e, int64_t ms)
{
    int64_t ready = start_of_step (f, e->step)->ms;
    struct task_attempt *a;

    for (size_t i = f->n; i-- > 0;) /* a retry waits only since the last attempt */
        if (!strcmp (f->attempts[i].step, e->step) && f->attempts[i].task == e->task) {
            if (f->attempts[i].is_over && f->attempts[i].end > ready)
                ready = f->attempts[i].end;
            break;
        }
    XGROW (f->attempts, f->n);
    a = &f->attempts[f->n++];
    *a = (struct task_attempt){ .task = (long)e->task, .number = (long)e->attempt, .begin = ms };
    a->ready = ready >= 0 && ready < ms ? ready : ms;
    snprintf (a->step, sizeof (a->step), "%s", e->step);
    snprintf (a->job, sizeof (a->job), "%s", e->job ? e->job : "");
}

static int take_flow_event (const struct event *e, void *arg, struct slurmdl_error *err)
{
    struct flow_reading *f = arg;
    struct task_attempt *a;
    int64_t ms;

    (void)err;
    if (f->g->created == 0)
        f->g->created = e->time;
    ms = since_created (f->g, e->time);
    f->last = ms > f->last ? ms : f->last;
    if (!e->step || !word_fits (e->step) || event_unfit (e) || strlen (e->step) >= sizeof (a->step))
        return 0;
    switch (e->op) {
    case EVENT_START:
    case EVENT_SUBMIT:
        start_of_step (f, e->step)->ms = ms;
        break;
    case EVENT_BEGIN:
        begin_step_attempt (f, e, ms);
        break;
    case EVENT_FAIL:
    case EVENT_PARK:
    case EVENT_DONE:
        if ((a = attempt_of_step (f, e)) && !a->is_over) {
            a->is_over = true;
            a->end = ms > a->begin ? ms : a->begin;
        }
        break;
    default:
        break;
    }
    return 0;
}

/* Classify all attempts of a task, of which 'first' is the first, and add the task's row. */
static void add_task (struct flow_reading *f, const char *dir, size_t first)
{
    const struct task_attempt *of = &f->attempts[first];
    struct trial_reading t = { .created = f->g->created };
    struct used_time sum = { { 0 } };
    char folder[PATH_MAX], name[64];

    snprintf (folder, sizeof (folder), "%.3900s/steps/%s/%ld", dir, of->step, of->task);
    read_logged_rows (f->g, &t, folder);
    for (size_t i = first; i < f->n; i++) {
        struct task_attempt *a = &f->attempts[i];
        if (strcmp (a->step, of->step) || a->task != of->task)
            continue;
        if (!a->is_over)
            a->end = f->last > a->begin ? f->last : a->begin;
        t.attempt = a->number;
        select_attempt (f->g, &t, folder);
        spend_attempt (&t, false, a->begin, a->end, &a->used);
        a->used.ms[TIME_QUEUED] = a->ready < a->begin ? a->begin - a->ready : 0;
        add_time (&sum, &a->used);
    }
    reading_free (&t);
    snprintf (name, sizeof (name), "%.40s/%ld", of->step, of->task);
    add_row (f->g, ROW_STEP, name)->used = sum;
}

/* Add the row of the job that ran attempt 'first': its attempts, and idle time between them. */
static void add_flow_job (struct flow_reading *f, size_t first)
{
    const struct task_attempt *of = &f->attempts[first];
    struct goodput_row *row = add_row (f->g, ROW_JOB, *of->job ? of->job : "local");
    int64_t until = of->begin;

    for (size_t i = first; i < f->n; i++) {
        const struct task_attempt *a = &f->attempts[i];
        struct used_time used = a->used;
        if (strcmp (a->job, of->job))
            continue;
        if (i > first)
            used.ms[TIME_QUEUED] = 0;
        add_time (&row->used, &used);
        if (*of->job && a->begin > until)
            row->used.ms[TIME_IDLE] += a->begin - until;
        until = a->end > until ? a->end : until;
    }
}

static void add_flow_rows (struct flow_reading *f, const char *dir)
{
    for (size_t i = 0; i < f->n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = f->attempts[k].task == f->attempts[i].task
                   && !strcmp (f->attempts[k].step, f->attempts[i].step);
        if (!seen)
            add_task (f, dir, i);
    }
    for (size_t i = 0; i < f->n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i && !seen; k++)
            seen = !strcmp (f->attempts[k].job, f->attempts[i].job);
        if (!seen)
            add_flow_job (f, i);
    }
    add_sum (f->g);
}

static int flow_fill (struct goodput *g, const char *dir, struct slurmdl_error *err)
{
    struct flow_reading f = { .g = g };
    char path[PATH_MAX];
    struct log *log;
    int rv = -1;

    g->gpus = NAN;
    snprintf (path, sizeof (path), "%.4000s/log", dir);
    if ((log = log_create (path, err)) && log_sync (log, take_flow_event, &f, err) >= 0) {
        add_flow_rows (&f, dir);
        rv = 0;
    }
    int e = errno;
    log_destroy (log);
    free (f.starts);
    free (f.attempts);
    errno = e;
    return rv;
}

static void goodput_free (struct goodput *g)
{
    report_free (&g->report);
    free (g->peers);
    free (g->attempts);
    free (g->first);
    free (g->next);
    free (g->rows);
}

/* ---- printing ---- */

static double percent_of (const struct goodput_row *row, int what)
{
    int64_t all = allocated_ms (&row->used);

    return all > 0 ? 100.0 * (double)row->used.ms[what] / (double)all : 0;
}

static double gpu_hours (const struct goodput_row *row)
{
    return round (row->gpus * (double)allocated_ms (&row->used) / 3600) / 1000;
}

static json_t *goodput_row_json (const struct goodput_row *row)
{
    json_t *o = json_object ();
    char name[32];

    json_object_set_new (o, "kind", json_string (row_kinds[row->kind]));
    json_object_set_new (o, "name", json_string (row->name));
    json_object_set_new (o, "gpu_hours", finite_to_json (gpu_hours (row)));
    json_object_set_new (o, "allocated", json_real ((double)allocated_ms (&row->used) / 1000));
    for (int i = 0; i < TIME_CLASSES; i++)
        json_object_set_new (o, class_names[i], json_real ((double)row->used.ms[i] / 1000));
    for (int i = 0; i < TIME_CLASSES; i++) {
        snprintf (name, sizeof (name), "%s_percent", class_names[i]);
        if (i != TIME_QUEUED)
            json_object_set_new (o, name, json_real (round (percent_of (row, i) * 100) / 100));
    }
    return o;
}

static void print_goodput_json (const struct goodput *g)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < g->nrows; i++)
        json_array_append_new (list, goodput_row_json (&g->rows[i]));
    json_put (list, stdout, JSON_INDENT (2));
    putchar ('\n');
    json_decref (list);
}

/* The same columns as in JSON.  Names never need quotes. */
static void print_goodput_csv (const struct goodput *g)
{
    for (size_t k = 0; k < g->nrows; k++) {
        json_t *o = goodput_row_json (&g->rows[k]), *v;
        const char *name, *comma = "";
        if (k == 0) {
            json_object_foreach (o, name, v) {
                printf ("%s%s", comma, name);
                comma = ",";
            }
            putchar ('\n');
        }
        comma = "";
        json_object_foreach (o, name, v) {
            fputs (comma, stdout);
            comma = ",";
            if (json_is_string (v))
                fputs (json_string_value (v), stdout);
            else if (json_is_real (v))
                printf ("%.15g", json_real_value (v));
        }
        putchar ('\n');
        json_decref (o);
    }
}

enum { TEXT_OF, TEXT_GPU_HOURS, TEXT_ALLOCATED, TEXT_CLASSES };

static void put_goodput_row (struct libscols_table *tb, const struct goodput_row *row)
{
    struct libscols_line *line = table_line (tb);
    char text[32];

    table_set (line, TEXT_OF, "%s%s%s", row_kinds[row->kind], *row->name ? " " : "", row->name);
    if (!isnan (row->gpus))
        table_set (line, TEXT_GPU_HOURS, "%.3f", gpu_hours (row));
    duration_text (text, sizeof (text), (double)allocated_ms (&row->used) / 1000);
    table_set (line, TEXT_ALLOCATED, "%s", text);
    for (int i = 0; i < TIME_CLASSES; i++)
        if (i == TIME_QUEUED) {
            duration_text (text, sizeof (text), (double)row->used.ms[i] / 1000);
            table_set (line, TEXT_CLASSES + (size_t)i, "%s", text);
        } else
            table_set (line, TEXT_CLASSES + (size_t)i, "%.1f%%", percent_of (row, i));
}

static void print_goodput_table (const struct goodput *g)
{
    static const char *const least[] = { "GPU-hours", NULL };
    struct table_column columns[TEXT_CLASSES + TIME_CLASSES + 1] = { { "of", false },
                                                                     { "GPU-hours", true },
                                                                     { "allocated", true } };
    struct libscols_table *tb;
    char *hidden;

    for (int i = 0; i < TIME_CLASSES; i++)
        columns[TEXT_CLASSES + i] = (struct table_column){ class_names[i], true };
    tb = table_create ("goodput", columns, false);
    for (size_t i = 0; i < g->nrows; i++)
        put_goodput_row (tb, &g->rows[i]);
    hidden = table_fit (tb, least, TEXT_CLASSES, TEXT_CLASSES + TIME_CLASSES);
    table_print (tb);
    if (hidden)
        printf ("not shown: %s\n", hidden);
    free (hidden);
    scols_unref_table (tb);
}

/* ---- the command ---- */

static int print_goodput (const struct goodput *g, const struct goodput_options *opt)
{
    if (opt->json)
        print_goodput_json (g);
    else if (opt->csv)
        print_goodput_csv (g);
    else
        print_goodput_table (g);
    if (!*g->damage.text)
        return EXIT_OK;
    complain ("%s (some of its time may be shown as unknown)", g->damage.text);
    return EXIT_DAMAGED;
}

static int goodput_of_experiment (const struct command_line *line)
{
    struct goodput g = { .nrows = 0 };
    struct slurmdl_error err = { "" };
    struct sweep *s;
    long trial = 0;
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    if (line->nargs < 2 || (rv = parse_trial (s, line->args[1], &trial)) == 0)
        rv =
            goodput_fill (&g, s, trial, &err) < 0 ? fail (&err) : print_goodput (&g, line->options);
    goodput_free (&g);
    sweep_close (s);
    return rv;
}

static int goodput_of_flow (const struct command_line *line, const char *found)
{
    struct goodput g = { .nrows = 0 };
    struct slurmdl_error err = { "" };
    char dir[PATH_MAX];
    int rv;

    if (line->nargs > 1) {
        complain ("%s: a flow has no trials", found);
        return EXIT_USAGE;
    }
    if (!user_may_follow (found)) {
        complain ("%s: another user created this link: name the folder itself", found);
        return EXIT_NOT_FOUND;
    }
    if (!realpath (found, dir)) {
        errorf (&err, "%s: %s", found, strerror (errno));
        return fail (&err);
    }
    rv = flow_fill (&g, dir, &err) < 0 ? fail (&err) : print_goodput (&g, line->options);
    goodput_free (&g);
    return rv;
}

int cmd_goodput (const struct command_line *line)
{
    const struct goodput_options *opt = line->options;
    char dir[PATH_MAX];

    if (opt->json && opt->csv) {
        complain ("goodput: --json and --csv cannot be used together");
        return EXIT_USAGE;
    }
    if (line->args[0] && !experiment_is_there (line, line->args[0])
        && find_folder (line->dir, "flow.json", line->args[0], dir, sizeof (dir)) == 0)
        return goodput_of_flow (line, dir);
    return goodput_of_experiment (line);
}
