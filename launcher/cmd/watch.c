/* SPDX-License-Identifier: Apache-2.0 */
/* dl watch: an experiment at work, in the window of a terminal. */
#include <math.h>
#include <stdio.h>

#include "launcher/cmd/fault.h"
#include "launcher/cmd/follow.h"
#include "launcher/cmd/view.h"
#include "launcher/cmd/wait.h"
#include "launcher/progress/changes.h"
#include "launcher/progress/picture.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"

/* s between two looks, and its bounds */
static const double every = 1, least = 0.2, most = 3600;

static double interval (const struct watch_options *opt)
{
    return opt->seconds > 0 ? fmin (fmax (opt->seconds, least), most) : every;
}

static int draw (struct picture *p, struct slurmdl_error *err)
{
    struct screen c;

    if (picture_look (p, err) < 0)
        return -1;
    if (screen_begin (&c, 0, 0) == 0) {
        picture_draw (p, &c);
        screen_end (&c, NULL);
    }
    return 0;
}

enum watch_end { WATCH_ENDED, WATCH_LEFT, WATCH_GONE };

/* Returns an enum watch_end, or -1. */
static int in_window (struct sweep *s, double seconds, struct slurmdl_error *err)
{
    struct watch_for_workers w = { .said = true };
    struct picture p = { .s = s };
    int rv = WATCH_ENDED;

    screen_take (true);
    while (rv == WATCH_ENDED && s->state == SWEEP_RUNNING) {
        if (draw (&p, err) < 0)
            rv = -1;
        else if (screen_wait (seconds) == SCREEN_QUIT)
            rv = WATCH_LEFT;
        else if (sweep_sync (s, err) < 0)
            rv = -1;
        else if (workers_are_gone (s, &w))
            rv = WATCH_GONE;
    }
    screen_give_back ();
    picture_free (&p);
    return rv;
}

static int as_lines (struct sweep *s, double seconds, struct slurmdl_error *err)
{
    struct changes c = { .start = monotonic () };
    struct watch_for_workers w = { 0 };
    int rv = WATCH_ENDED;

    printf ("%s: %s, %.0f %% done, %ld trials\n", s->dir, sweep_state_name (s->state),
            floor (100 * searcher_progress (s->searcher)), s->ntrials);
    print_best (s);
    fflush (stdout);
    changes_skip (&c, s);
    while (rv == WATCH_ENDED && s->state == SWEEP_RUNNING && !ferror (stdout)) {
        screen_wait (seconds);
        rv = sweep_sync (s, err) < 0 ? -1 : WATCH_ENDED;
        changes_say (&c, s);
        if (rv == WATCH_ENDED && workers_are_gone (s, &w))
            rv = WATCH_GONE;
    }
    changes_free (&c);
    return rv;
}

static void conclude (const struct sweep *s)
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
    int how = WATCH_ENDED;

    if (rv)
        return rv;
    if (s->state == SWEEP_RUNNING)
        how = screen_is_there () ? in_window (s, interval (line->options), &err)
                                 : as_lines (s, interval (line->options), &err);
    if (how < 0)
        rv = fail (&err);
    else if (how == WATCH_LEFT)
        rv = EXIT_STOPPED;
    else {
        conclude (s);
        if (how == WATCH_GONE)
            say_workers_gone (s);
        rv = how == WATCH_GONE ? EXIT_NO_WORKERS : follow_status (s);
    }
    sweep_close (s);
    return rv;
}
