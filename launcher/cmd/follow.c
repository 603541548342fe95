/* SPDX-License-Identifier: Apache-2.0 */
/* Show a sweep's progress until it ends. */
#include "launcher/cmd/follow.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "launcher/cmd/fault.h"
#include "launcher/executor/executor.h"
#include "launcher/executor/local.h"
#include "launcher/executor/stop.h"
#include "launcher/format/text.h"
#include "launcher/format/trials_table.h"
#include "launcher/results/latest_metric.h"
#include "launcher/sweep/faults.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/array.h"
#include "launcher/sys/disk_reserve.h"
#include "launcher/sys/say.h"
#include "launcher/sys/terminal.h"
#include "runtime/base/clock.h"

enum { BAR = 30, RUNNING_MAX = 8, TRIALS_SHOWN = 10 };

static const long look_every = 300 * 1000 * 1000; /* ns */

/* What was already said of a trial. */
struct reported {
    size_t results;
    int fails;
    bool rejected;
};

struct follow_view {
    struct sweep *s;
    struct executor *x;
    bool tty;
    int lines; /* that the next picture replaces */
    double start;
    struct reported *reported; /* of each trial */
    long nreported;
    bool begun; /* the first look, at what there was before, is over */
    bool full;  /* the disk, as was said last */
};

static volatile sig_atomic_t interrupted;

static void on_interrupt (int sig)
{
    (void)sig;
    interrupted = 1;
}

/* ---- a picture on a terminal ---- */

static int columns (void)
{
    struct winsize ws;

    return ioctl (1, TIOCGWINSZ, &ws) == 0 && ws.ws_col ? ws.ws_col : 80;
}

static void print_line (struct follow_view *v, const char *text)
{
    printf ("%.*s", columns () - 1, text);
    terminal_control ("\033[K");
    putchar ('\n');
    v->lines++;
}

static void print_bar (struct follow_view *v)
{
    const struct sweep *s = v->s;
    double done = searcher_progress (s->searcher);
    char bar[BAR + 1];
    char text[256];
    char elapsed[32];
    long open = 0;
    long failed = 0;

    for (long i = 0; i < s->ntrials; i++) {
        open += s->trials[i].state == TRIAL_OPEN;
        failed += s->trials[i].state == TRIAL_FAILED;
    }
    for (int i = 0; i < BAR; i++)
        bar[i] = i < (int)(done * BAR) ? '#' : '-';
    bar[BAR] = '\0';
    duration_text (elapsed, sizeof (elapsed), monotonic () - v->start);
    snprintf (text,
              sizeof (text),
              "[%s] %3.0f %%  trials %ld  open %ld  failed %ld  %s",
              bar,
              floor (done * 100),
              s->ntrials,
              open,
              failed,
              elapsed);
    print_line (v, text);
}

static void print_best_line (struct follow_view *v)
{
    const struct sweep *s = v->s;
    const struct sweep_trial *t = sweep_trial (s, s->best);
    char text[512];
    char *params;

    if (!t) {
        print_line (v,
                    *v->x->note ? v->x->note : "waiting for the first result");
        return;
    }
    params = trial_text (s, t);
    snprintf (text,
              sizeof (text),
              "best %s %.6g (trial %ld, length %lld)  %s",
              s->exp->metric,
              t->best,
              s->best,
              (long long)t->best_length,
              params ? params : "");
    free (params);
    print_line (v, text);
}

static void print_open (struct follow_view *v, long trial)
{
    const struct sweep_trial *t = sweep_trial (v->s, trial);
    struct metric_progress p;
    char text[256];
    char ago[32];
    int n;

    if (trial_progress (v->s, trial, &p) < 0) {
        snprintf (text,
                  sizeof (text),
                  "  trial %-4ld to %lld",
                  trial,
                  (long long)t->target);
        print_line (v, text);
        return;
    }
    duration_text (ago, sizeof (ago), progress_age (&p));
    n = snprintf (text,
                  sizeof (text),
                  "  trial %-4ld to %-6lld at %-6lld %s %.6g, %s ago",
                  trial,
                  (long long)t->target,
                  (long long)p.step,
                  v->s->exp->metric,
                  p.value,
                  ago);
    if (isfinite (progress_rate (&p)) && n < (int)sizeof (text))
        snprintf (text + n,
                  sizeof (text) - (size_t)n,
                  ", %.3g a second",
                  progress_rate (&p));
    print_line (v, text);
}

static void draw (struct follow_view *v)
{
    int shown = 0;

    if (v->lines)
        terminal_control ("\033[%dA", v->lines);
    v->lines = 0;
    print_bar (v);
    print_best_line (v);
    if (disk_reserve_is_spent (v->s->dir))
        print_line (v, DISK_RESERVE_SPENT);
    for (long i = 1; i <= v->s->ntrials && shown < RUNNING_MAX; i++)
        if (sweep_trial (v->s, i)->state == TRIAL_OPEN) {
            print_open (v, i);
            shown++;
        }
    terminal_control ("\033[J");
    fflush (stdout);
}

/* ---- lines into a file or a pipe ---- */

static int add_reported (struct follow_view *v)
{
    while (v->nreported < v->s->ntrials) {
        struct reported *list =
            array_grow (v->reported, (size_t)v->nreported, sizeof (*list));
        if (!list)
            return -1;
        v->reported = list;
        const struct sweep_trial *t = &v->s->trials[v->nreported];
        list[v->nreported] = (struct reported){ 0 };
        /* of what was there before this command began, the last result */
        if (!v->begun && t->nmilestones > 0)
            list[v->nreported].results = t->nmilestones - 1;
        v->nreported++;
    }
    v->begun = true;
    return 0;
}

static void say_space (struct follow_view *v, const char *elapsed)
{
    bool full =
        v->s->state == SWEEP_RUNNING && disk_reserve_is_spent (v->s->dir);

    if (full != v->full)
        printf ("%8s  %s\n",
                elapsed,
                full ? DISK_RESERVE_SPENT : "there is space again");
    v->full = full;
}

/* Also those that were overtaken since the last look. */
static void say_results (struct follow_view *v, long trial, const char *elapsed)
{
    const struct sweep *s = v->s;
    const struct sweep_trial *t = sweep_trial (s, trial);
    struct reported *r = &v->reported[trial - 1];

    for (; r->results < t->nmilestones; r->results++) {
        const struct milestone *m = &t->milestones[r->results];
        bool last = r->results + 1 == t->nmilestones;
        printf ("%8s  trial %-4ld length %-6lld %s %.6g%s\n",
                elapsed,
                trial,
                (long long)m->length,
                s->exp->metric,
                m->metric,
                last && t->stopped ? "  stopped early"
                : trial == s->best && m->length == t->best_length ? "  best"
                                                                  : "");
    }
}

static void say_changes (struct follow_view *v)
{
    const struct sweep *s = v->s;
    char elapsed[32];

    if (add_reported (v) < 0)
        return;
    duration_text (elapsed, sizeof (elapsed), monotonic () - v->start);
    say_space (v, elapsed);
    for (long i = 0; i < s->ntrials; i++) {
        const struct sweep_trial *t = &s->trials[i];
        struct reported *r = &v->reported[i];
        if (t->fails != r->fails)
            printf ("%8s  trial %-4ld failed (%d): %s\n",
                    elapsed,
                    i + 1,
                    t->fails,
                    t->why ? t->why : "");
        say_results (v, i + 1, elapsed);
        if (t->state == TRIAL_REJECTED && !r->rejected)
            printf ("%8s  trial %-4ld rejected\n", elapsed, i + 1);
        r->rejected = t->state == TRIAL_REJECTED;
        r->fails = t->fails;
    }
    fflush (stdout);
}

/* ---- the end ---- */

static void say_files (const struct sweep *s)
{
    printf ("files: %s/\n"
            "  experiment.conf  trials/NNNN/a.K/{hparams.json, metrics.h5, "
            "ckpt/, log}  log/\n",
            s->dir);
}

/* There is no result at all: what went wrong last is what the user needs. */
static void say_why (const struct sweep *s)
{
    for (long i = 1; i <= s->ntrials; i++)
        if (sweep_trial (s, i)->why) {
            printf ("no result: trial %ld: %s; 'dl logs %s %ld' prints its "
                    "output\n",
                    i,
                    sweep_trial (s, i)->why,
                    s->dir,
                    i);
            return;
        }
}

static void say_best (const struct sweep *s)
{
    const struct sweep_trial *t = sweep_trial (s, s->best);
    char *text;

    print_best (s);
    if (!t && !s->nresults && !sweep_is_faulty (s))
        say_why (s);
    if (!t)
        return;
    text = trial_text (s, t);
    if (text && *text)
        printf ("  %s\n", text);
    free (text);
}

int follow_status (const struct sweep *s)
{
    if (sweep_is_faulty (s))
        return EXIT_FAULT;
    switch (s->state) {
    case SWEEP_COMPLETED:
        return EXIT_OK;
    case SWEEP_FAILED:
        return EXIT_FAILED;
    case SWEEP_PARTIAL:
        return EXIT_PARTIAL;
    default:
        return EXIT_STOPPED;
    }
}

static int conclude (struct follow_view *v, bool workers_left)
{
    struct sweep *s = v->s;
    char elapsed[32];

    duration_text (elapsed, sizeof (elapsed), monotonic () - v->start);
    printf ("\n%s: %s after %s, %ld trials\n",
            s->exp->name,
            state_text (s),
            elapsed,
            s->ntrials);
    say_best (s);
    print_failed (s);
    print_limits (s);
    if (s->ntrials)
        print_best_trials (s, TRIALS_SHOWN);
    print_excluded (s);
    print_fault (s);
    print_results (s);
    say_files (s);
    /* tasks that Slurm has put back into the queue find nothing to do */
    if (sweep_has_ended (s) && *v->x->job)
        executor_cancel (s, "--state=PENDING", NULL);
    if (s->state != SWEEP_RUNNING)
        return follow_status (s);
    if (workers_left)
        return EXIT_STOPPED;
    if (v->x->excluded)
        complain ("no worker is left: this machine is excluded from the "
                  "experiment; 'dl resume' on another one goes on");
    else
        complain ("no worker is left%s%s; 'dl resume' goes on",
                  *v->x->note ? ": " : "",
                  v->x->note);
    return EXIT_NO_WORKERS;
}

static int watch (struct follow_view *v, struct slurmdl_error *err)
{
    struct timespec pause = { 0, look_every };
    int workers = 1;

    while (!interrupted && v->s->state == SWEEP_RUNNING && workers) {
        if (v->tty)
            draw (v);
        else
            say_changes (v);
        nanosleep (&pause, NULL);
        workers = v->x->ops->tick (v->x);
        if (sweep_sync (v->s, err) < 0)
            return -1;
    }
    if (v->tty)
        draw (v);
    else
        say_changes (v);
    return workers;
}

static void finish_local (struct follow_view *v)
{
    /* they read the end of the sweep, or the stop, by themselves */
    while (v->s->state != SWEEP_RUNNING && v->x->ops == &executor_local
           && v->x->ops->tick (v->x))
        usleep (20000);
}

void follow_signals (void)
{
    struct sigaction sa = { .sa_handler = on_interrupt };

    sigaction (SIGINT, &sa, NULL);
    sigaction (SIGTERM, &sa, NULL);
}

int follow (struct sweep *s, struct executor *x)
{
    struct follow_view v = {
        .s = s, .x = x, .tty = isatty (1), .start = monotonic ()
    };
    struct slurmdl_error err = { "" };
    int workers;
    int rv;

    follow_signals ();
    printf ("%s: searcher %s, %ld worker%s (%s%s%s)\n",
            s->dir,
            s->exp->searcher_name,
            x->granted,
            x->granted == 1 ? "" : "s",
            x->ops->name,
            *x->job ? " job " : "",
            x->job);
    workers = watch (&v, &err);
    if (workers < 0)
        rv = fail (&err);
    else if (interrupted && s->state == SWEEP_RUNNING) {
        x->ops->leave (x);
        rv = EXIT_STOPPED;
    } else {
        finish_local (&v);
        rv = conclude (&v, workers);
    }
    free (v.reported);
    return rv;
}
