/* SPDX-License-Identifier: Apache-2.0 */
/* Show a sweep's progress until it ends. */
#include "launcher/cmd/follow.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/fault.h"
#include "launcher/config/experiment.h"
#include "launcher/config/search_settings.h"
#include "launcher/progress/picture.h"
#include "launcher/sweep/best.h"
#include "launcher/sweep/log.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/replay.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/text.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/say.h"
#include "launcher/sys/strings.h"
#include "launcher/worker/executor.h"
#include "runtime/base/clock.h"

enum {
    TRIALS_SHOWN = 10,
    LOOK_EVERY = 300 /* ms */,
    DRAW_EVERY = 3 /* looks */
};

struct follow_view {
    struct sweep *s;
    struct executor *x;
    bool tty;
    struct picture picture;
    struct changes *said;
    char note[sizeof (((struct executor *)NULL)->note)]; /* said last */
};

static volatile sig_atomic_t interrupted;

static void on_follow_interrupt (int sig)
{
    (void)sig;
    interrupted = 1;
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
    char *dir = shell_word (s->dir);

    for (long i = 1; i <= s->ntrials; i++)
        if (sweep_trial (s, i)->why) {
            printf ("no result: trial %ld: %s; 'dl logs %s %ld' prints its "
                    "output\n",
                    i, sweep_trial (s, i)->why, dir, i);
            break;
        }
    free (dir);
}

static void say_best (const struct sweep *s)
{
    const struct sweep_trial *t = sweep_trial (s, sweep_best (s));
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

static int conclude_follow (struct follow_view *v, bool workers_left)
{
    struct sweep *s = v->s;
    char elapsed[32];

    duration_text (elapsed, sizeof (elapsed), monotonic () - v->said->start);
    printf ("\n%s: %s after %s, %ld trials\n", s->exp->name, state_text (s), elapsed, s->ntrials);
    say_best (s);
    print_failed (s);
    print_limits (s);
    print_shared_files (s);
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
        complain ("no worker is left%s%s; 'dl resume' goes on", *v->x->note ? ": " : "",
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

/* ^C, or a window of another size. */
static void pause_watch (struct follow_view *v)
{
    if (!v->tty)
        usleep (LOOK_EVERY * 1000);
    else if (screen_wait (LOOK_EVERY / 1e3) == SCREEN_QUIT)
        interrupted = 1;
}

/* Why Slurm lets the job wait. */
static void say_note (struct follow_view *v)
{
    char elapsed[32];

    if (v->s->ntrials || v->x->ops == &executor_local || !strcmp (v->note, v->x->note))
        return;
    duration_text (elapsed, sizeof (elapsed), monotonic () - v->said->start);
    snprintf (v->note, sizeof (v->note), "%s", v->x->note);
    printf ("%8s  %s\n", elapsed, v->note);
    fflush (stdout);
}

static int follow_until_end (struct follow_view *v, struct slurmdl_error *err)
{
    int workers = 1;
    int looks = 0;
    int news;

    while (!interrupted && v->s->state == SWEEP_RUNNING && workers) {
        if (!v->tty) {
            changes_say (v->said, v->s);
            say_note (v);
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
        changes_say (v->said, v->s);
    return workers;
}

static void finish_local (struct follow_view *v)
{
    struct slurmdl_error err = { "" };

    /* they read the end of the sweep, or the stop, by themselves */
    while (v->s->state != SWEEP_RUNNING && v->x->ops == &executor_local && v->x->ops->tick (v->x))
        usleep (20000);
    if (v->s->state != SWEEP_RUNNING) /* what they have put since then */
        sweep_sync (v->s, &err);
}

void follow_signals (void)
{
    struct sigaction sa = { .sa_handler = on_follow_interrupt };

    sigaction (SIGINT, &sa, NULL);
    sigaction (SIGTERM, &sa, NULL);
}

int follow (struct sweep *s, struct executor *x, struct changes *said)
{
    struct follow_view v = {
        .s = s, .x = x, .tty = screen_is_there (), .picture.s = s, .said = said
    };
    struct slurmdl_error err = { "" };
    int workers;
    int rv;

    follow_signals ();
    printf ("%s: searcher %s, %ld worker%s (%s%s%s)\n", s->dir, s->exp->search->searcher,
            x->granted, x->granted == 1 ? "" : "s", x->ops->name, *x->job ? " job " : "", x->job);
    print_direction (s);
    said->start = monotonic ();
    if (v.tty)
        screen_take (false);
    else
        print_best (s);
    workers = follow_until_end (&v, &err);
    screen_give_back ();
    if (workers < 0)
        rv = fail (&err);
    else if (interrupted && s->state == SWEEP_RUNNING) {
        x->ops->leave (x);
        rv = EXIT_STOPPED;
    } else {
        finish_local (&v);
        rv = conclude_follow (&v, workers);
    }
    picture_free (&v.picture);
    return rv;
}
