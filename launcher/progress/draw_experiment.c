/* SPDX-License-Identifier: Apache-2.0 */
/* Draw an experiment in a terminal. */
#include "launcher/progress/progress.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/resources.h"
#include "launcher/config/search_settings.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/text.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/strings.h"
#include "runtime/base/clock.h"
#include "runtime/base/error.h"

/* ---- what its log says about the past ---- */

/* A length at which trials are compared. */
struct history_rung {
    int64_t length;
    long results;
    long best; /* trial number; 0 if none has a finite value */
    double value;
};

static void note_event_time (struct history *h, const struct event *e)
{
    while (h->nsince < (size_t)e->trial) {
        XGROW (h->since, h->nsince);
        h->since[h->nsince++] = NAN;
    }
    h->since[e->trial - 1] = e->time;
}

static void note_result (struct history *h, const struct event *e)
{
    XGROW (h->results, h->n);
    h->results[h->n++] = (struct history_result){
        .trial = (long)e->trial,
        .attempt = (long)e->attempt,
        .length = e->length,
        .value = e->nmetrics ? e->metrics[0] : e->metric,
        .time = e->time,
    };
}

static int take_history_event (const struct event *e, void *arg, struct slurmdl_error *err)
{
    struct history *h = arg;

    (void)err;
    if (e->trial < 1 || e->trial > h->limit)
        return 0;
    note_event_time (h, e);
    if (e->op == EVENT_RESULT)
        note_result (h, e);
    return 0;
}

/* Read new entries of the log of 's'; the caller has just synchronized 's'.  Start
 * with a history of {0}.  Returns -1 with 'err' on failure.
 */
static int history_sync (struct history *h, const struct sweep *s, struct slurmdl_error *err)
{
    char path[PATH_MAX];

    snprintf (path, sizeof (path), "%s/log", s->dir);
    if (!h->log && !(h->log = log_create (path, err)))
        return -1;
    /* The log may have grown since 's' was read, but never by that many trials. */
    h->limit = s->ntrials + 65536;
    return log_sync (h->log, take_history_event, h, err) < 0 ? -1 : 0;
}

static void history_free (struct history *h)
{
    log_destroy (h->log);
    free (h->results);
    free (h->since);
    *h = (struct history){ 0 };
}

/* Return whether a result was accepted. */
static bool result_counts (const struct sweep *s, const struct history_result *r)
{
    const struct sweep_trial *t = sweep_trial (s, r->trial);

    return t && trial_milestone (t, r->length) == r->attempt;
}

/* Return the seconds since a trial's last event, or NaN if unknown. */
static double history_age (const struct history *h, long trial)
{
    struct timespec now;

    if (trial < 1 || (size_t)trial > h->nsince)
        return NAN;
    clock_gettime (CLOCK_REALTIME, &now);
    return fmax (0, (double)now.tv_sec - h->since[trial - 1]);
}

static struct history_rung *find_rung (struct history_rung *list, int *n, int max, int64_t length)
{
    int at = 0;

    while (at < *n && list[at].length < length)
        at++;
    if (at < *n && list[at].length == length)
        return &list[at];
    if (*n == max) { /* full: drop the shortest length */
        if (at == 0)
            return NULL;
        memmove (list, list + 1, (size_t)(at - 1) * sizeof (*list));
        at--;
    } else {
        memmove (list + at + 1, list + at, (size_t)(*n - at) * sizeof (*list));
        (*n)++;
    }
    list[at] = (struct history_rung){ .length = length, .value = NAN };
    return &list[at];
}

/* List the lengths of accepted results in ascending order, the longest 'max' of
 * them.  Returns how many.
 */
static int history_rungs (const struct history *h, const struct sweep *s, struct history_rung *list,
                          int max)
{
    int n = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct history_result *r = &h->results[i];
        struct history_rung *g;
        struct sweep_result of;
        if (!result_counts (s, r) || !(g = find_rung (list, &n, max, r->length)))
            continue;
        g->results++;
        of = point_result_at (s, trial_point (s, r->trial), r->length);
        if ((s->exp->search->config.repeats <= 1 || of.n == s->exp->search->config.repeats)
            && sweep_better (s, of.value, g->value)) {
            g->value = of.value;
            g->best = r->trial;
        }
    }
    return n;
}

/* List the best value so far after each accepted result that best_walk_take()
 * counts.  The caller frees the list.  Returns how many.
 */
static long history_best (const struct history *h, const struct sweep *s, double **list)
{
    struct best_walk walk;
    long n = 0;

    *list = xmalloc ((h->n + 1) * sizeof (**list));
    best_walk_begin (&walk, s);
    for (size_t i = 0; i < h->n; i++) {
        const struct history_result *r = &h->results[i];
        if (isfinite (r->value) && result_counts (s, r)
            && best_walk_take (&walk, r->trial, r->length))
            (*list)[n++] = walk.best;
    }
    best_walk_end (&walk);
    return n;
}

/* ---- the newest values of its trials ---- */

static void add_newest (struct picture *p, long ntrials)
{
    while (p->ntrials < ntrials) {
        XGROW (p->trials, (size_t)p->ntrials);
        p->trials[p->ntrials++] = (struct picture_trial){ 0 };
    }
}

/* Compute a fingerprint that changes when a row is added. */
static uint64_t metrics_files_stamp (const struct sweep *s, long number)
{
    const struct sweep_trial *t = sweep_trial (s, number);
    uint64_t sum = (uint64_t)t->over + 1;
    char path[PATH_MAX];
    struct stat st;

    for (int k = 0; k < 100; k++) {
        char part[16] = "";
        if (k)
            snprintf (part, sizeof (part), ".%d", k);
        snprintf (path, sizeof (path), "%s/trials/%04ld/a.%ld/metrics%s.h5", s->dir, number,
                  t->over + 1, part);
        if (lstat (path, &st) < 0)
            break;
        sum = sum * 31 + (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec
              + (uint64_t)st.st_size;
    }
    return sum;
}

/* Returns false if the trial has logged nothing. */
static bool newest_value (const struct sweep *s, struct picture_trial *t, long number,
                          struct metric_progress *m)
{
    uint64_t files = metrics_files_stamp (s, number);

    if (files != t->files) {
        t->known = trial_progress (s, number, &t->newest) == 0;
        t->files = files;
    }
    *m = t->newest;
    return t->known;
}

/* ---- a line chart ---- */

enum { LABEL = 12, ACROSS = 2, DOWN = 4 }; /* ACROSS x DOWN dots per Braille character */

struct chart {
    int columns, rows; /* dots */
    double low, high;
    bool log;
    unsigned char *dots;
};

static double chart_place (const struct chart *g, double v)
{
    double low = g->log ? log (g->low) : g->low;
    double high = g->log ? log (g->high) : g->high;

    return high > low ? ((g->log ? log (v) : v) - low) / (high - low) : 0.5;
}

static void set_column (struct chart *g, int column, int from, int to)
{
    for (int row = from < to ? from : to; row <= (from < to ? to : from); row++)
        g->dots[row * g->columns + column] = 1;
}

static void plot_line (struct chart *g, const double *values, long n)
{
    int before = -1;

    for (int i = 0; i < g->columns; i++) {
        double v = values[(long)((double)i / g->columns * (double)n)];
        int row = (int)lround ((1 - chart_place (g, v)) * (g->rows - 1));
        set_column (g, i, before < 0 ? row : before, row);
        before = row;
    }
}

/* Write the Braille character at column 'x' and row 'y' as UTF-8. */
static char *put_braille (char *to, const struct chart *g, int x, int y)
{
    static const unsigned char bits[DOWN][ACROSS] = {
        { 0x01, 0x08 }, { 0x02, 0x10 }, { 0x04, 0x20 }, { 0x40, 0x80 }
    };
    unsigned set = 0;

    for (int j = 0; j < DOWN; j++)
        for (int i = 0; i < ACROSS; i++)
            if (g->dots[(y * DOWN + j) * g->columns + x * ACROSS + i])
                set |= bits[j][i];
    *to++ = (char)0xe2;
    *to++ = (char)(0xa0 | set >> 6);
    *to++ = (char)(0x80 | (set & 0x3f));
    return to;
}

static void draw_row (struct screen *c, const struct chart *g, int y, int height)
{
    char *text = xcalloc ((size_t)c->width, 3), *end = text;
    char label[32] = "";

    if (y == 0)
        snprintf (label, sizeof (label), "%.5g", g->high);
    else if (y == height - 1)
        snprintf (label, sizeof (label), "%.5g", g->low);
    screen_right (c, STYLE_DIM, LABEL - 2, label);
    screen_put (c, STYLE_DIM, c->utf8 ? " │" : " |");
    for (int x = 0; x < c->width - LABEL; x++)
        if (c->utf8)
            end = put_braille (end, g, x, y);
        else
            *end++ = g->dots[y * g->columns + x] ? '*' : ' ';
    screen_put (c, STYLE_GOOD, "%s", text);
    screen_line (c);
    free (text);
}

void line_chart (struct screen *c, const double *values, long n, int height)
{
    struct chart g = { .columns = (c->width - LABEL) * (c->utf8 ? ACROSS : 1),
                       .rows = height * (c->utf8 ? DOWN : 1),
                       .low = INFINITY,
                       .high = -INFINITY };

    if (g.columns < 4)
        return;
    g.dots = xcalloc ((size_t)g.columns, (size_t)g.rows);
    for (long i = 0; i < n; i++) {
        g.low = fmin (g.low, values[i]);
        g.high = fmax (g.high, values[i]);
    }
    g.log = g.low > 0 && g.high / g.low > 20;
    plot_line (&g, values, n);
    for (int y = 0; y < height; y++)
        draw_row (c, &g, y, height);
    free (g.dots);
}

/* ---- the picture ---- */

/* ---- trials ---- */

/* The trials of an experiment, counted. */
struct picture_tally {
    long n[TRIAL_PHASES];
    long *running; /* trial numbers */
    long *failed;  /* trial numbers, the last one first */
    double ended;  /* seconds spent in finished attempts */
    double begun;  /* seconds spent in running attempts */
    double left;   /* seconds of training left; NaN if unknown */
    double eta;    /* seconds until the end; NaN if unknown */
};

/* Widths of the columns.  A column of width 0 is left out. */
struct columns_of_trials {
    int trial, steps, bar, value, age, rate, host;
};

static struct columns_of_trials columns_for (const struct screen *c)
{
    return (struct columns_of_trials){
        .trial = 7,
        .steps = c->width >= 50 ? 14 : 0,
        .bar = c->width >= 76 ? 10 : 0,
        .value = 13,
        .age = 9,
        .rate = c->width >= 90 ? 10 : 0,
        .host = c->width >= 120 ? 14 : 0,
    };
}

/* Separate sections by blank lines if the window is high enough. */
static bool has_gaps (const struct screen *c)
{
    return c->height >= 32;
}

static void draw_gap (struct screen *c)
{
    if (has_gaps (c))
        screen_line (c);
}

static void draw_heading (const struct picture *p, struct screen *c, const char *title)
{
    struct columns_of_trials w = columns_for (c);

    screen_cell (c, STYLE_BOLD, w.trial, title);
    if (w.steps)
        screen_right (c, STYLE_DIM, c->column + w.steps, "length");
    if (w.bar) {
        screen_put (c, STYLE_DIM, "  ");
        screen_cell (c, STYLE_DIM, w.bar, "");
    }
    screen_right (c, STYLE_DIM, c->column + w.value, p->s->exp->metric->name);
    screen_right (c, STYLE_DIM, c->column + w.age, "age");
    if (w.rate)
        screen_right (c, STYLE_DIM, c->column + w.rate, "per s");
    screen_put (c, STYLE_DIM, "  parameters");
    screen_line (c);
}

struct trial_line {
    long number;
    int64_t at, of;
    double value, age, rate;
    enum screen_style style; /* of the bar */
};

static void draw_trial (const struct picture *p, struct screen *c, const struct trial_line *l)
{
    struct columns_of_trials w = columns_for (c);
    char *params = trial_text (p->s, sweep_trial (p->s, l->number));
    long best = sweep_best (p->s);
    bool is_best = best && trial_point (p->s, l->number) == trial_point (p->s, best);
    char text[64] = "";

    snprintf (text, sizeof (text), "%5ld%s", l->number, is_best ? "*" : "");
    screen_cell (c, is_best ? STYLE_GOOD : STYLE_BOLD, w.trial, text);
    if (w.steps) {
        if (l->of > 0)
            snprintf (text, sizeof (text), "%lld/%lld", (long long)l->at, (long long)l->of);
        else
            snprintf (text, sizeof (text), "%lld", (long long)l->at);
        screen_right (c, STYLE_PLAIN, c->column + w.steps, text);
    }
    if (w.bar) {
        screen_put (c, STYLE_PLAIN, "  ");
        screen_bar (c, l->style, w.bar, l->of > 0 ? (double)l->at / (double)l->of : 0);
    }
    snprintf (text, sizeof (text), isnan (l->value) ? "-" : "%.6g", l->value);
    screen_right (c, STYLE_PLAIN, c->column + w.value, text);
    duration_text (text, sizeof (text), l->age);
    screen_right (c, STYLE_DIM, c->column + w.age, isnan (l->age) ? "-" : text);
    if (w.rate) {
        snprintf (text, sizeof (text), "%.3g", l->rate);
        screen_right (c, STYLE_DIM, c->column + w.rate, isnan (l->rate) ? "-" : text);
    }
    screen_put (c, STYLE_PLAIN, "  %s", params ? params : "");
    screen_line (c);
    free (params);
}

/* Return how many entries of a list of 'n' to show.  The heading takes one of the
 * 'room' lines, and so does "and N more" if the list is cut.
 */
static long lines_for (long n, int room)
{
    return n < room ? n : room > 2 ? room - 2 : 1;
}

static void draw_more (struct screen *c, long n, const char *what)
{
    char more[AND_MORE_SIZE];

    if (n <= 0)
        return;
    screen_put (c, STYLE_DIM, "     %s %s", and_more (more, n), what);
    screen_line (c);
}

/* A running trial is as old as its newest value, or as its attempt if it has not
 * logged a value.
 */
static void draw_running (struct picture *p, const struct picture_tally *t, struct screen *c,
                          int room)
{
    long n = t->n[PHASE_RUNNING];
    long shown = lines_for (n, room);

    if (n == 0 || room < 2)
        return;
    draw_heading (p, c, "running");
    for (long i = 0; i < shown; i++) {
        long number = t->running[n - 1 - i];
        const struct sweep_trial *of = sweep_trial (p->s, number);
        struct metric_progress m;
        struct trial_line l = { .number = number,
                                .of = experiment_knows_length (p->s->exp) ? of->target : 0,
                                .at = of->length,
                                .value = NAN,
                                .rate = NAN,
                                .age = history_age (&p->history, number),
                                .style = STYLE_BUSY };
        if (newest_value (p->s, &p->trials[number - 1], number, &m)) {
            l.at = m.step;
            l.value = m.value;
            l.age = progress_age (&m);
            l.rate = progress_rate (&m);
        }
        draw_trial (p, c, &l);
    }
    if (shown + 1 < room)
        draw_more (c, n - shown, "running");
}

static void draw_failed (const struct picture *p, const struct picture_tally *t, struct screen *c,
                         int room)
{
    long n = 0, shown;
    char text[64];

    while (t->failed[n])
        n++;
    if (n == 0 || room < 2)
        return;
    screen_put (c, STYLE_BOLD, "failed");
    screen_line (c);
    shown = lines_for (n, room);
    for (long i = 0; i < shown; i++) {
        const struct sweep_trial *of = sweep_trial (p->s, t->failed[i]);
        double age = history_age (&p->history, t->failed[i]);
        snprintf (text, sizeof (text), "%5ld", t->failed[i]);
        screen_cell (c, STYLE_BOLD, 7, text);
        duration_text (text, sizeof (text), age);
        screen_right (c, STYLE_DIM, c->column + 8, isnan (age) ? "-" : text);
        if (of->state == TRIAL_OPEN)
            screen_put (c, STYLE_WARNING, "  failed %d time%s:", of->tries.failed,
                        of->tries.failed == 1 ? "" : "s");
        screen_put (c, STYLE_BAD, "  %s", of->why ? of->why : "");
        screen_line (c);
    }
    if (shown + 1 < room)
        draw_more (c, n - shown, "failed");
}

/* Waiting trials have no values to show, so print their numbers and the longest
 * wait.
 */
static void draw_waiting (const struct picture *p, const struct picture_tally *t, struct screen *c)
{
    double longest = 0;
    char text[32];
    long n = 0;

    if (!t->n[PHASE_WAITING])
        return;
    screen_put (c, STYLE_BOLD, "waiting");
    for (long i = 1; i <= p->s->ntrials && n < 20; i++) {
        if (trial_phase_of (p->s, sweep_trial (p->s, i)) != PHASE_WAITING
            || (p->s->state == SWEEP_RUNNING && trial_is_claimed (p->s, i)))
            continue;
        screen_put (c, STYLE_PLAIN, "%s%ld", n++ ? ", " : " ", i);
        longest = fmax (longest, history_age (&p->history, i));
    }
    duration_text (text, sizeof (text), longest);
    screen_put (c, STYLE_DIM, "%s (%s)", n < t->n[PHASE_WAITING] ? ", ..." : "", text);
    screen_line (c);
}

/* With repeats, show one line per point, for its first trial. */
static void draw_best_trials (const struct picture *p, struct screen *c, int room)
{
    struct sweep *s = p->s;
    long *list = sweep_order (s);
    long n = 0;

    for (long i = 0; i < s->ntrials; i++)
        if (trial_repeat (s, list[i]) == 0
            && isfinite (point_result (s, trial_point (s, list[i]), 0).value))
            list[n++] = list[i];
    if (n > 1 && room >= 4) {
        draw_heading (p, c, s->exp->search->config.repeats > 1 ? "means" : "best");
        for (long i = 0; i < n && i < room - 1; i++) {
            struct sweep_result r = point_result (s, trial_point (s, list[i]), 0);
            struct trial_line l = { .number = list[i],
                                    .at = r.length,
                                    .of = s->exp->search->config.max_length,
                                    .value = r.value,
                                    .rate = NAN,
                                    .age = history_age (&p->history, list[i]),
                                    .style = STYLE_PLAIN };
            draw_trial (p, c, &l);
        }
    }
    free (list);
}

/* Divide the window: at most a quarter for failures, and for the best trials at
 * least a third, or whatever the other lists leave.  Each list has a heading.
 */
static void picture_trials (struct picture *p, const struct picture_tally *t, struct screen *c)
{
    long failed = 0, running = t->n[PHASE_RUNNING];
    int room = screen_room (c) - (t->n[PHASE_WAITING] > 0);
    int of_failed, of_running, of_best;

    while (t->failed[failed])
        failed++;
    if (has_gaps (c))
        room -= (running > 0) + (failed > 0) + 1;
    of_failed = failed == 0 ? 0 : (int)fmin ((double)failed + 1, room / 4);
    of_best = room / 3 < 4 ? 0 : room / 3;
    of_running = (int)fmin ((double)running + 1, room - of_failed - of_best);
    if (running)
        draw_gap (c);
    draw_running (p, t, c, of_running);
    draw_waiting (p, t, c);
    if (failed)
        draw_gap (c);
    draw_failed (p, t, c, of_failed);
    draw_gap (c);
    draw_best_trials (p, c, screen_room (c));
}

enum {
    RUNGS = 8,       /* lines */
    CLAIMS = 256,    /* waiting trials to check for a claim, one lstat() each */
    CHART_ROOM = 26, /* minimum window height for a chart, lines */
};
/* seconds between reads of workers and GPUs: normally, and while no worker lives */
static const double look_every = 10, look_soon = 2;

/* ---- reading ---- */

int picture_look (struct picture *p, struct slurmdl_error *err)
{
    double now = monotonic ();

    if (history_sync (&p->history, p->s, err) < 0)
        return -1;
    add_newest (p, p->s->ntrials);
    if (p->looked == 0 || now - p->looked >= (p->workers.alive ? look_every : look_soon)) {
        free (p->workers.list);
        p->workers = workers_look (p->s);
        p->gpus = gpu_fill_look (p->s);
        p->looked = now;
    }
    return 0;
}

void picture_free (struct picture *p)
{
    history_free (&p->history);
    free (p->workers.list);
    free (p->trials);
    p->trials = NULL;
}

/* ---- counting ---- */

static double experiment_age (const struct sweep *s)
{
    double end = sweep_has_ended (s) ? s->changed : (double)time (NULL);

    return fmax (0, end - s->created);
}

static void estimate (const struct picture *p, struct picture_tally *t)
{
    const struct sweep *s = p->s;
    double done = s->searcher ? searcher_progress (s->searcher) : 0;
    long at_work = t->n[PHASE_RUNNING] ?: p->workers.alive;
    double left;

    t->left = t->eta = NAN;
    if (sweep_has_ended (s) || done <= 0 || t->ended <= 0)
        return;
    left = t->ended * (1 - done) / done;
    t->left = fmax (left / 10, left - t->begun); /* running trials may take longer than average */
    if (p->workers.alive > 0 && at_work > 0)
        t->eta = t->left / (double)at_work;
    if (s->exp->search->max_hours > 0 && !isnan (t->eta))
        t->eta = fmin (t->eta, fmax (0, s->exp->search->max_hours * 3600 - experiment_age (s)));
}

static void count_trials (const struct picture *p, struct picture_tally *t)
{
    const struct sweep *s = p->s;
    size_t room = (size_t)s->ntrials + 1;
    long nfailed = 0;
    int claims = 0;

    *t = (struct picture_tally){ .running = xcalloc (room, sizeof (long)),
                                 .failed = xcalloc (room, sizeof (long)) };
    for (long i = s->ntrials; i >= 1; i--) {
        const struct sweep_trial *of = sweep_trial (s, i);
        enum trial_phase phase = trial_phase_of (s, of);
        if (phase == PHASE_WAITING && s->state == SWEEP_RUNNING && claims++ < CLAIMS
            && trial_is_claimed (s, i))
            phase = PHASE_RUNNING;
        if (phase == PHASE_RUNNING)
            t->begun += fmax (0, history_age (&p->history, i));
        if (phase == PHASE_FAILED || (of->tries.failed && of->state == TRIAL_OPEN))
            t->failed[nfailed++] = i;
        t->n[phase]++;
        t->ended += of->seconds;
        if (phase == PHASE_RUNNING)
            t->running[t->n[phase] - 1] = i;
    }
    estimate (p, t);
}

/* ---- the head ---- */

static const char *dot_text (const struct screen *c)
{
    return c->utf8 ? " · " : " - ";
}

static enum screen_style state_style (const struct sweep *s)
{
    switch (s->state) {
    case SWEEP_COMPLETED:
        return STYLE_GOOD;
    case SWEEP_FAILED:
    case SWEEP_PARTIAL:
    case SWEEP_KILLED:
        return STYLE_BAD;
    case SWEEP_RUNNING:
        return STYLE_BUSY;
    default:
        return STYLE_WARNING;
    }
}

static void draw_title (const struct picture *p, struct screen *c)
{
    const struct sweep *s = p->s;
    const char *slash = strrchr (s->dir, '/');
    char elapsed[32];

    duration_text (elapsed, sizeof (elapsed), experiment_age (s));
    screen_put (c, STYLE_BOLD, "%s", slash ? slash + 1 : s->dir);
    screen_put (c, STYLE_DIM, "%s", dot_text (c));
    screen_put (c, state_style (s), "%s", sweep_state_name (s->state));
    screen_put (c, STYLE_DIM, "%s%s", dot_text (c), s->exp->search->searcher);
    if (s->state == SWEEP_RUNNING)
        screen_put (c, STYLE_DIM, "%s%ld worker%s", dot_text (c), p->workers.alive,
                    p->workers.alive == 1 ? "" : "s");
    if (c->column + (int)strlen (elapsed) + 2 <= c->width)
        screen_right (c, STYLE_DIM, c->width, elapsed);
    screen_line (c);
}

static void draw_progress (const struct picture *p, const struct picture_tally *t, struct screen *c)
{
    double done = p->s->searcher ? searcher_progress (p->s->searcher) : 0;
    char text[96], left[32];

    duration_text (left, sizeof (left), t->eta);
    if (sweep_has_ended (p->s))
        snprintf (text, sizeof (text), " %3.0f %%", floor (done * 100));
    else if (isnan (t->eta))
        snprintf (text, sizeof (text), " %3.0f %%, time left not known", floor (done * 100));
    else
        snprintf (text, sizeof (text), " %3.0f %%, about %s left", floor (done * 100), left);
    if (c->width < 60)
        text[6] = '\0';
    screen_bar (c, STYLE_GOOD, c->width - screen_columns (c, text), done);
    screen_put (c, STYLE_PLAIN, "%s", text);
    screen_line (c);
}

static void draw_counts (const struct picture *p, const struct picture_tally *t, struct screen *c)
{
    static const struct {
        enum trial_phase phase;
        enum screen_style style;
    } order[] = {
        { PHASE_RUNNING, STYLE_BUSY },   { PHASE_WAITING, STYLE_WARNING },
        { PHASE_PAUSED, STYLE_PLAIN },   { PHASE_COMPLETED, STYLE_GOOD },
        { PHASE_STOPPED, STYLE_PLAIN },  { PHASE_FAILED, STYLE_BAD },
        { PHASE_REJECTED, STYLE_PLAIN },
    };
    const char *gap = "";

    for (size_t i = 0; i < sizeof (order) / sizeof (*order); i++) {
        enum trial_phase k = order[i].phase;
        if (!t->n[k])
            continue;
        screen_put (c, STYLE_DIM, "%s", gap);
        screen_put (c, order[i].style, "%ld %s", t->n[k], trial_phases[k]);
        gap = dot_text (c);
    }
    if (!p->s->ntrials)
        screen_put (c, STYLE_DIM, "no trial has started");
    screen_line (c);
}

static void draw_hours (const struct picture *p, const struct picture_tally *t, struct screen *c)
{
    int64_t gpus = experiment_gpus (p->s->exp);
    double each = gpus > 0 ? (double)gpus : 1;
    const char *what = gpus > 0 ? "GPU time" : "trial time";
    char spent[32], left[32];

    duration_text (spent, sizeof (spent), (t->ended + t->begun) * each);
    screen_put (c, STYLE_PLAIN, "%s spent: %s", what, spent);
    if (!isnan (t->left)) {
        duration_text (left, sizeof (left), t->left * each);
        screen_put (c, STYLE_PLAIN, ", about %s left", left);
    }
    if (p->s->exp->search->max_gpu_hours > 0)
        screen_put (c, STYLE_DIM, " (of %g h)", p->s->exp->search->max_gpu_hours);
    screen_line (c);
}

static void draw_gpus (const struct picture *p, struct screen *c)
{
    const struct gpu_fill *g = &p->gpus;

    if (!g->gpus)
        return;
    screen_put (c, STYLE_PLAIN, "%d GPU%s ", g->gpus, g->gpus == 1 ? "" : "s");
    if (isnan (g->busy))
        screen_put (c, STYLE_DIM, "busy: not known");
    else {
        screen_bar (c, g->busy < 40 ? STYLE_WARNING : STYLE_GOOD, c->width >= 80 ? 20 : 10,
                    g->busy / 100);
        screen_put (c, STYLE_PLAIN, " %3.0f %% busy", g->busy);
    }
    if (!isnan (g->memory))
        screen_put (c, STYLE_PLAIN, ", memory %.0f %% full", 100 * g->memory);
    screen_line (c);
}

/* Return the length of the metric and its value at the start of 'text'. */
static size_t bold_of (const char *text)
{
    const char *end = strstr (text, " (mean of ") ?: strstr (text, ": trial ");

    return end ? (size_t)(end - text) : strlen (text);
}

static void draw_best (const struct picture *p, struct screen *c)
{
    const struct sweep *s = p->s;
    const struct sweep_trial *t = sweep_trial (s, sweep_best (s));
    char text[256];
    char *params;

    if (!t) {
        screen_put (c, STYLE_DIM, "no result yet");
        screen_line (c);
        return;
    }
    sweep_best_text (s, NULL, text, sizeof (text));
    screen_put (c, STYLE_PLAIN, "best ");
    screen_put (c, STYLE_BOLD, "%.*s", (int)bold_of (text), text);
    screen_put (c, STYLE_DIM, "%s", text + bold_of (text));
    if ((params = trial_text (s, t)) && *params)
        screen_put (c, STYLE_PLAIN, "  %s", params);
    free (params);
    screen_line (c);
}

/* ---- what is wrong ---- */

static void draw_note (struct screen *c, const char *text)
{
    if (!text || !*text)
        return;
    screen_put (c, STYLE_WARNING, "%s", text);
    screen_line (c);
}

/* Maximum number of trials whose last recovery is shown. */
enum { HEALED_MOST = 4 };

static void draw_healing (const struct sweep *s, long trial, struct screen *c)
{
    long over = sweep_trial (s, trial)->over;
    char *notes = trial_healing (s, trial, over + 1);
    char text[256], *last, *said;

    if (!notes && over > 0)
        notes = trial_healing (s, trial, over);
    if (!notes)
        return;
    notes[strlen (notes) - (*notes != '\0')] = '\0';
    last = strrchr (notes, '\n') ? strrchr (notes, '\n') + 1 : notes;
    if ((said = strchr (last, ' '))) {
        snprintf (text, sizeof (text), "trial %ld:%.200s", trial, said);
        draw_note (c, text);
    }
    free (notes);
}

static void draw_notes (const struct picture *p, struct screen *c)
{
    const struct sweep *s = p->s;
    const struct submit *awaited = workers_awaited (s, &p->workers);
    char text[192];

    workers_idle_text (s, &p->workers, text, sizeof (text));
    draw_note (c, text);
    if (p->workers.alive == 0 && awaited) {
        snprintf (text, sizeof (text), "no worker of job %s has started; see 'squeue --jobs=%s'",
                  awaited->job, awaited->job);
        draw_note (c, text);
    }
    draw_note (c, p->note);
    if (s->state == SWEEP_RUNNING && disk_reserve_is_spent (s->dir))
        draw_note (c, DISK_RESERVE_SPENT);
    for (long i = 0; i < s->nopen && i < HEALED_MOST; i++)
        draw_healing (s, s->open[i], c);
    for (size_t i = 0; i < s->nhosts; i++)
        if (s->hosts[i].why) {
            snprintf (text, sizeof (text), "machine %.60s is excluded: %.80s", s->hosts[i].name,
                      s->hosts[i].why);
            draw_note (c, text);
        }
}

/* ---- charts ---- */

static void draw_history_lines (const struct picture *p, struct screen *c)
{
    int height = (c->height - CHART_ROOM) / 5 + 3;
    double *list;
    long n;

    if (c->height < CHART_ROOM || c->width < 40)
        return;
    n = history_best (&p->history, p->s, &list);
    if (n >= 3)
        line_chart (c, list, n, height < 7 ? height : 7);
    free (list);
}

static void draw_rungs (const struct picture *p, struct screen *c)
{
    const struct sweep *s = p->s;
    struct history_rung list[RUNGS];
    int n = history_rungs (&p->history, p->s, list, RUNGS);
    int wide = c->width >= 100 ? 40 : c->width >= 60 ? 20 : 8;
    long most = 1;
    char text[64];

    for (int i = 0; i < n; i++)
        most = list[i].results > most ? list[i].results : most;
    for (int i = 0; n > 1 && i < n && screen_room (c) > 3; i++) {
        snprintf (text, sizeof (text), "%lld", (long long)list[i].length);
        screen_put (c, STYLE_DIM, i ? "        " : "length  ");
        screen_right (c, STYLE_PLAIN, 14, text);
        screen_put (c, STYLE_PLAIN, " ");
        screen_bar (c, STYLE_BUSY, wide, (double)list[i].results / (double)most);
        snprintf (text, sizeof (text), "%ld", list[i].results);
        screen_right (c, STYLE_PLAIN, 15 + wide + 7, text);
        if (list[i].best)
            screen_put (c, STYLE_DIM, "  best %.6g, %s %ld", list[i].value,
                        s->exp->search->config.repeats > 1 ? "point" : "trial",
                        trial_point (s, list[i].best));
        screen_line (c);
    }
}

void picture_draw (struct picture *p, struct screen *c)
{
    struct picture_tally t;

    count_trials (p, &t);
    draw_title (p, c);
    draw_progress (p, &t, c);
    draw_counts (p, &t, c);
    draw_hours (p, &t, c);
    draw_gpus (p, c);
    draw_best (p, c);
    draw_notes (p, c);
    draw_history_lines (p, c);
    draw_rungs (p, c);
    picture_trials (p, &t, c);
    free (t.running);
    free (t.failed);
}
