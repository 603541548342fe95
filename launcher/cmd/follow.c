/* SPDX-License-Identifier: Apache-2.0 */
/* Follow an experiment: for the command that started it, dl wait and dl watch. */
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/worker_settings.h"
#include "launcher/progress/progress.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/text.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/messages.h"
#include "launcher/sys/strings.h"
#include "launcher/worker/worker.h"
#include "runtime/base/clock.h"
#include "searcher/searcher.h"

/* ---- the command that started the experiment ---- */

enum {
    TRIALS_SHOWN = 10,
    LOOK_EVERY = 300 /* ms */,
    DRAW_EVERY = 3 /* polls */
};

struct follow_view {
    struct sweep *s;
    struct executor *x;
    bool tty;
    struct picture picture;
    struct changes *printed;
    char note[sizeof (((struct executor *)NULL)->note)]; /* the note printed last */
};

static volatile sig_atomic_t follow_interrupted;

static void on_follow_interrupt (int sig)
{
    (void)sig;
    follow_interrupted = 1;
}

/* ---- the end ---- */

static void print_file_layout (const struct sweep *s)
{
    printf ("files: %s/\n"
            "  experiment.conf  trials/NNNN/a.K/{hparams.json, metrics.h5, ckpt/, log}  log/\n",
            s->dir);
}

/* No trial has a result, so print the first failure. */
static void print_first_failure (const struct sweep *s)
{
    char *dir = shell_word (s->dir);

    for (long i = 1; i <= s->ntrials; i++)
        if (sweep_trial (s, i)->why) {
            printf ("no result: trial %ld: %s; 'dl logs %s %ld' prints its output\n", i,
                    sweep_trial (s, i)->why, dir, i);
            break;
        }
    free (dir);
}

static void print_best_or_failure (const struct sweep *s)
{
    const struct sweep_trial *t = sweep_trial (s, sweep_best (s));
    char *text;

    print_best (s);
    if (!t && !s->nresults && !sweep_is_faulty (s))
        print_first_failure (s);
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

static int conclude_follow (struct follow_view *v, bool workers_left)
{
    struct sweep *s = v->s;
    char elapsed[32];

    duration_text (elapsed, sizeof (elapsed), monotonic () - v->printed->start);
    printf ("\n%s: %s after %s, %ld trial%s\n", s->exp->name, state_text (s), elapsed, s->ntrials,
            s->ntrials == 1 ? "" : "s");
    print_best_or_failure (s);
    print_failed (s);
    print_limits (s);
    print_shared_files (s);
    if (s->ntrials)
        print_best_trials (s, TRIALS_SHOWN);
    print_excluded (s);
    print_fault (s);
    print_results (s);
    print_file_layout (s);
    /* requeued tasks would find nothing to do */
    if (sweep_has_ended (s) && *v->x->job)
        executor_cancel (s, "--state=PENDING", NULL);
    if (s->state != SWEEP_RUNNING)
        return follow_status (s);
    if (workers_left)
        return EXIT_STOPPED;
    if (v->x->excluded)
        complain ("no worker is left: this machine is excluded from the experiment; run 'dl "
                  "resume' on another one to continue");
    else
        complain ("no worker is left%s%s; run 'dl resume' to continue", *v->x->note ? ": " : "",
                  v->x->note);
    return EXIT_NO_WORKERS;
}

static void draw_follow (struct follow_view *v)
{
    struct slurmdl_error err = { "" };
    struct screen c;

    v->picture.note = v->x->note;
    if (picture_look (&v->picture, &err) == 0) {
        screen_begin (&c, 0, 0);
        picture_draw (&v->picture, &c);
        screen_end (&c, NULL);
    }
}

/* Wait for the next poll, ^C or a resize of the window. */
static void pause_watch (struct follow_view *v)
{
    if (!v->tty)
        usleep (LOOK_EVERY * 1000);
    else if (screen_wait (LOOK_EVERY / 1e3) == SCREEN_QUIT)
        follow_interrupted = 1;
}

/* Print why Slurm does not start the job yet. */
static void print_queue_note (struct follow_view *v)
{
    char elapsed[32];

    if (v->s->ntrials || v->x->ops == &executor_local || !strcmp (v->note, v->x->note))
        return;
    duration_text (elapsed, sizeof (elapsed), monotonic () - v->printed->start);
    snprintf (v->note, sizeof (v->note), "%s", v->x->note);
    printf ("%8s  %s\n", elapsed, v->note);
    fflush (stdout);
}

static int follow_until_end (struct follow_view *v, struct slurmdl_error *err)
{
    int workers = 1;
    int looks = 0;
    int news;

    while (!follow_interrupted && v->s->state == SWEEP_RUNNING && workers) {
        if (!v->tty) {
            changes_print (v->printed, v->s);
            print_queue_note (v);
        } else if (looks++ % DRAW_EVERY == 0)
            draw_follow (v);
        pause_watch (v);
        workers = v->x->ops->tick (v->x);
        if ((news = sweep_sync (v->s, err)) < 0)
            return -1;
        if (news > 0)
            log_confirm (v->s->log);
    }
    if (!v->tty)
        changes_print (v->printed, v->s);
    return workers;
}

static void finish_local (struct follow_view *v)
{
    struct slurmdl_error err = { "" };

    /* local workers notice the end of the sweep by themselves */
    while (v->s->state != SWEEP_RUNNING && v->x->ops == &executor_local && v->x->ops->tick (v->x))
        usleep (20000);
    if (v->s->state != SWEEP_RUNNING) /* what they have published since */
        sweep_sync (v->s, &err);
}

void follow_signals (void)
{
    struct sigaction sa = { .sa_handler = on_follow_interrupt };

    sigaction (SIGINT, &sa, NULL);
    sigaction (SIGTERM, &sa, NULL);
}

int follow (struct sweep *s, struct executor *x, struct changes *printed)
{
    struct follow_view v = {
        .s = s, .x = x, .tty = screen_is_there (), .picture.s = s, .printed = printed
    };
    struct slurmdl_error err = { "" };
    int workers;
    int rv;

    follow_signals ();
    printf ("%s: searcher %s, %ld worker%s (%s%s%s)\n", s->dir, s->exp->search->searcher,
            x->granted, x->granted == 1 ? "" : "s", x->ops->name, *x->job ? " job " : "", x->job);
    print_direction (s);
    printed->start = monotonic ();
    if (v.tty)
        screen_take (false);
    else
        print_best (s);
    workers = follow_until_end (&v, &err);
    screen_give_back ();
    if (workers < 0)
        rv = fail (&err);
    else if (follow_interrupted && s->state == SWEEP_RUNNING) {
        x->ops->leave (x);
        rv = EXIT_STOPPED;
    } else {
        finish_local (&v);
        rv = conclude_follow (&v, workers);
    }
    picture_free (&v.picture);
    return rv;
}

/* ---- dl wait: follow workers that another command started ---- */

/* State of workers_are_gone(). */
struct watch_for_workers {
    double next; /* time of the next check */
    int looks;
    bool warned; /* the user knows that no worker is active */
};

static const double wait_every = 1;
static const double first_look = 5, idle_every = 30; /* between two checks for workers */

static double time_until (double deadline)
{
    double left = deadline - monotonic ();

    return left < wait_every ? left : wait_every;
}

/* ---- whether workers are active or may start ---- */

/* Whether no worker is active and none will start.  Without a job, wait a while first,
 * because a killed local worker may be about to be replaced.
 */
static bool is_left_alone (struct sweep *s, const struct worker_view *v)
{
    struct slurmdl_error err = { "" };
    struct queue q = { 0 };
    bool alone;

    if (v->alive > 0)
        return false;
    if (s->nsubmits == 0)
        return v->n > 0 && v->silence > idle_every;
    alone = queue_find (&q, s, &err) == 0 && q.n == 0;
    free (q.list);
    /* the worker that ended in the meantime may have finished the experiment */
    return alone && sweep_sync (s, &err) >= 0 && s->state == SWEEP_RUNNING;
}

/* Warn that workers may never start.  Returns whether it did. */
static bool warn_of_idle_workers (const struct sweep *s, const struct worker_view *v)
{
    const struct submit *job = v->alive ? NULL : workers_awaited (s, v);
    char text[PATH_MAX + 512];

    workers_idle_text (s, v, text, sizeof (text));
    if (*text) {
        complain ("%s: %s; 'dl resume %s' starts workers", s->dir, text, s->word);
        return true;
    }
    if (!job)
        return false;
    last_words_text (s, job->job, text, sizeof (text));
    complain ("%s: no worker of job %s has %s%s; 'squeue --jobs=%s' shows %s; if it is gone, 'dl "
              "resume %s' submits another",
              s->dir, job->job, *text ? "started: " : "started", text, job->job,
              *text ? "whether it is retried" : "why", s->word);
    return true;
}

/* Print that no worker is left, and why. */
static void complain_workers_gone (const struct sweep *s)
{
    char text[PATH_MAX + 512] = "";

    if (s->nsubmits > 0)
        unseen_text (s, s->submits[s->nsubmits - 1].job, "", text, sizeof (text));
    complain ("%s: no worker is left%s%s; run 'dl resume %s' to continue", s->dir,
              *text ? ": " : "", text, s->word);
}

/* Call this repeatedly.  Returns true if no worker is left: all are gone, and Slurm,
 * which is asked only then, has no task of the experiment.
 */
static bool workers_are_gone (struct sweep *s, struct watch_for_workers *w)
{
    double now = monotonic ();
    struct worker_view v;
    bool gone;

    if (w->next == 0)
        w->next = now + first_look;
    if (s->state != SWEEP_RUNNING || now < w->next)
        return false;
    v = workers_look (s);
    gone = is_left_alone (s, &v);
    if (!gone && !w->warned && w->looks > 0 && s->state == SWEEP_RUNNING)
        w->warned = warn_of_idle_workers (s, &v);
    free (v.list);
    w->next = now + idle_every - (w->looks++ ? 0 : first_look);
    return gone;
}

static int print_end (const struct sweep *s)
{
    printf ("%s: %s, %ld trials\n", s->dir, state_text (s), s->ntrials);
    print_best (s);
    print_failed (s);
    print_fault (s);
    print_results (s);
    return follow_status (s);
}

int wait_while_at_work (struct sweep *s)
{
    struct slurmdl_error err = { "" };
    struct watch_for_workers w = { 0 };

    while (s->state == SWEEP_RUNNING) {
        usleep ((useconds_t)(wait_every * 1e6));
        if (sweep_sync (s, &err) < 0)
            return fail (&err);
        if (workers_are_gone (s, &w))
            return EXIT_NO_WORKERS;
    }
    return print_end (s);
}

/* After pause, stop or kill, wait until the workers have noticed it. */
static void wait_for_workers (const struct sweep *s, double deadline)
{
    double most = (double)(2 * s->exp->worker->heartbeat + s->exp->worker->grace);
    double end = fmin (deadline, monotonic () + most);
    bool asked = s->state == SWEEP_PAUSED || s->state == SWEEP_STOPPED || s->state == SWEEP_KILLED;
    long alive = 1;

    while (asked && alive > 0 && monotonic () < end) {
        struct worker_view v = workers_look (s);
        alive = v.alive;
        free (v.list);
        if (alive > 0)
            usleep (200000);
    }
}

/* Polls the files, and asks Slurm only if no worker seems active. */
static int wait_for_sweep_end (struct sweep *s, double seconds)
{
    double deadline = seconds < 0 ? 1e300 : monotonic () + seconds;
    struct slurmdl_error err = { "" };
    struct watch_for_workers w = { 0 };
    double pause;

    while (s->state == SWEEP_RUNNING) {
        if ((pause = time_until (deadline)) <= 0) {
            complain ("%s is still %s after %g s", s->dir, sweep_state_name (s->state), seconds);
            return EXIT_TIMEOUT;
        }
        usleep ((useconds_t)(pause * 1e6));
        if (sweep_sync (s, &err) < 0)
            return fail (&err);
        if (workers_are_gone (s, &w)) {
            complain_workers_gone (s);
            return EXIT_NO_WORKERS;
        }
    }
    wait_for_workers (s, deadline);
    return print_end (s);
}

int cmd_wait (const struct command_line *line)
{
    const struct wait_options *opt = line->options;
    struct sweep *s;
    int rv = open_experiment (line, line->args[0], &s);

    if (rv)
        return rv;
    rv = wait_for_sweep_end (s, opt->timeout);
    sweep_close (s);
    return rv;
}

/* ---- dl watch ---- */

/* seconds between two refreshes, and their limits */
static const double watch_every = 1, watch_least = 0.2, watch_most = 3600;

static double interval (const struct watch_options *opt)
{
    return opt->seconds > 0 ? fmin (fmax (opt->seconds, watch_least), watch_most) : watch_every;
}

static int draw_watch (struct picture *p, struct slurmdl_error *err)
{
    struct screen c;

    if (picture_look (p, err) < 0)
        return -1;
    screen_begin (&c, 0, 0);
    picture_draw (p, &c);
    screen_end (&c, NULL);
    return 0;
}

enum watch_end { WATCH_ENDED, WATCH_LEFT, WATCH_GONE, WATCH_ERROR };

static enum watch_end watch_in_window (struct sweep *s, double seconds, struct slurmdl_error *err)
{
    struct watch_for_workers w = { .warned = true };
    struct picture p = { .s = s };
    enum watch_end end = WATCH_ENDED;

    screen_take (true);
    while (end == WATCH_ENDED && s->state == SWEEP_RUNNING) {
        if (draw_watch (&p, err) < 0)
            end = WATCH_ERROR;
        else if (screen_wait (seconds) == SCREEN_QUIT)
            end = WATCH_LEFT;
        else if (sweep_sync (s, err) < 0)
            end = WATCH_ERROR;
        else if (workers_are_gone (s, &w))
            end = WATCH_GONE;
    }
    screen_give_back ();
    picture_free (&p);
    return end;
}

static enum watch_end watch_as_lines (struct sweep *s, double seconds, struct slurmdl_error *err)
{
    struct changes c = { .start = monotonic () };
    struct watch_for_workers w = { 0 };
    enum watch_end end = WATCH_ENDED;

    printf ("%s: %s, %.0f %% done, %ld trials\n", s->dir, sweep_state_name (s->state),
            floor (100 * searcher_progress (s->searcher)), s->ntrials);
    print_best (s);
    fflush (stdout);
    changes_skip (&c, s);
    while (end == WATCH_ENDED && s->state == SWEEP_RUNNING && !ferror (stdout)) {
        screen_wait (seconds);
        end = sweep_sync (s, err) < 0 ? WATCH_ERROR : WATCH_ENDED;
        changes_print (&c, s);
        if (end == WATCH_ENDED && workers_are_gone (s, &w))
            end = WATCH_GONE;
    }
    changes_free (&c);
    return end;
}

static void conclude_watch (const struct sweep *s)
{
    printf ("%s: %s, %ld trials\n", s->dir, state_text (s), s->ntrials);
    print_best (s);
    print_failed (s);
    print_limits (s);
    print_shared_files (s);
    print_fault (s);
}

int cmd_watch (const struct command_line *line)
{
    struct slurmdl_error err = { "" };
    struct sweep *s;
    int rv = open_experiment (line, line->args[0], &s);
    enum watch_end how = WATCH_ENDED;

    if (rv)
        return rv;
    if (s->state == SWEEP_RUNNING)
        how = screen_is_there () ? watch_in_window (s, interval (line->options), &err)
                                 : watch_as_lines (s, interval (line->options), &err);
    if (how == WATCH_ERROR)
        rv = fail (&err);
    else if (how == WATCH_LEFT)
        rv = EXIT_STOPPED;
    else {
        conclude_watch (s);
        if (how == WATCH_GONE)
            complain_workers_gone (s);
        rv = how == WATCH_GONE ? EXIT_NO_WORKERS : follow_status (s);
    }
    sweep_close (s);
    return rv;
}
