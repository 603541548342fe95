/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of trials in the picture of an experiment. */
#include "launcher/progress/picture_trials.h"

#include <math.h>
#include <stdlib.h>

#include "launcher/format/text.h"
#include "launcher/progress/newest.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/queries.h"

/* Widths of the columns; what has none is left out. */
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

/* Sections stand apart where the window has room for that. */
static bool has_gaps (const struct screen *c)
{
    return c->height >= 32;
}

static void draw_gap (struct screen *c)
{
    if (has_gaps (c))
        screen_line (c);
}

static void
draw_heading (const struct picture *p, struct screen *c, const char *title)
{
    struct columns_of_trials w = columns_for (c);

    screen_cell (c, STYLE_BOLD, w.trial, title);
    if (w.steps)
        screen_right (c, STYLE_DIM, c->column + w.steps, "length");
    if (w.bar) {
        screen_put (c, STYLE_DIM, "  ");
        screen_cell (c, STYLE_DIM, w.bar, "");
    }
    screen_right (c, STYLE_DIM, c->column + w.value, p->s->exp->metric);
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

static void draw_trial (const struct picture *p,
                        struct screen *c,
                        const struct trial_line *l)
{
    struct columns_of_trials w = columns_for (c);
    char *params = trial_text (p->s, sweep_trial (p->s, l->number));
    long best = sweep_best (p->s);
    bool is_best =
        best && trial_point (p->s, l->number) == trial_point (p->s, best);
    char text[64] = "";

    snprintf (text, sizeof (text), "%5ld%s", l->number, is_best ? "*" : "");
    screen_cell (c, is_best ? STYLE_GOOD : STYLE_BOLD, w.trial, text);
    if (w.steps) {
        snprintf (text,
                  sizeof (text),
                  "%lld/%lld",
                  (long long)l->at,
                  (long long)l->of);
        screen_right (c, STYLE_PLAIN, c->column + w.steps, text);
    }
    if (w.bar) {
        screen_put (c, STYLE_PLAIN, "  ");
        screen_bar (
            c, l->style, w.bar, l->of > 0 ? (double)l->at / (double)l->of : 0);
    }
    snprintf (text, sizeof (text), isnan (l->value) ? "-" : "%.6g", l->value);
    screen_right (c, STYLE_PLAIN, c->column + w.value, text);
    duration_text (text, sizeof (text), l->age);
    screen_right (c, STYLE_DIM, c->column + w.age, isnan (l->age) ? "-" : text);
    if (w.rate) {
        snprintf (text, sizeof (text), "%.3g", l->rate);
        screen_right (
            c, STYLE_DIM, c->column + w.rate, isnan (l->rate) ? "-" : text);
    }
    screen_put (c, STYLE_PLAIN, "  %s", params ? params : "");
    screen_line (c);
    free (params);
}

/* Of a list of 'n' below its heading; the last line says how many more. */
static long lines_for (long n, int room)
{
    return n < room ? n : room > 2 ? room - 2 : 1;
}

static void draw_more (struct screen *c, long n, const char *what)
{
    if (n <= 0)
        return;
    screen_put (c, STYLE_DIM, "      and %ld more %s", n, what);
    screen_line (c);
}

/* The age of a trial that is at work is that of its newest value, or of its
 * attempt.
 */
static void draw_running (struct picture *p,
                          const struct picture_tally *t,
                          struct screen *c,
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
                                .of = of->target,
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

static void draw_failed (const struct picture *p,
                         const struct picture_tally *t,
                         struct screen *c,
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
            screen_put (c,
                        STYLE_WARNING,
                        "  failed %d time%s:",
                        of->fails,
                        of->fails == 1 ? "" : "s");
        screen_put (c, STYLE_BAD, "  %s", of->why ? of->why : "");
        screen_line (c);
    }
    if (shown + 1 < room)
        draw_more (c, n - shown, "failed");
}

/* Those that wait have no value of their own: numbers and the longest wait. */
static void draw_waiting (const struct picture *p,
                          const struct picture_tally *t,
                          struct screen *c)
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
    screen_put (
        c, STYLE_DIM, "%s (%s)", n < t->n[PHASE_WAITING] ? ", ..." : "", text);
    screen_line (c);
}

/* With repeats a line for each point: its first trial. */
static void
draw_best_trials (const struct picture *p, struct screen *c, int room)
{
    struct sweep *s = p->s;
    long *list = sweep_order (s);
    long n = 0;

    for (long i = 0; list && i < s->ntrials; i++)
        if (trial_repeat (s, list[i]) == 0
            && isfinite (point_result (s, trial_point (s, list[i]), 0).value))
            list[n++] = list[i];
    if (list && n > 1 && room >= 4) {
        draw_heading (p, c, s->exp->search.repeats > 1 ? "means" : "best");
        for (long i = 0; i < n && i < room - 1; i++) {
            struct sweep_result r =
                point_result (s, trial_point (s, list[i]), 0);
            struct trial_line l = { .number = list[i],
                                    .at = r.length,
                                    .of = s->exp->search.max_length,
                                    .value = r.value,
                                    .rate = NAN,
                                    .age = history_age (&p->history, list[i]),
                                    .style = STYLE_PLAIN };
            draw_trial (p, c, &l);
        }
    }
    free (list);
}

/* Each list has a line for its heading; failures have a quarter of the room at
 * most, the best trials a third or what the others leave.
 */
void picture_trials (struct picture *p,
                     const struct picture_tally *t,
                     struct screen *c)
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
