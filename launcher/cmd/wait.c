/* SPDX-License-Identifier: Apache-2.0 */
/* dl wait: until an experiment has ended or was paused. */
#include "launcher/cmd/wait.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/fault.h"
#include "launcher/cmd/follow.h"
#include "launcher/cmd/queue.h"
#include "launcher/progress/workers.h"
#include "launcher/sweep/find_experiment.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sweep/trials_table.h"
#include "launcher/sys/say.h"
#include "launcher/worker/executor.h"
#include "runtime/base/clock.h"

static const double look_every = 1;
static const double first_look = 5, idle_every = 30; /* for workers */

static double time_until (double deadline)
{
    double left = deadline - monotonic ();

    return left < look_every ? left : look_every;
}

/* ---- whether anybody is at work, or may be ---- */

/* A worker of this machine that was killed may be about to be replaced. */
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
    /* what has ended meanwhile may have put the end */
    return alone && sweep_sync (s, &err) >= 0 && s->state == SWEEP_RUNNING;
}

/* Nobody may ever come. */
static bool say_idle (const struct sweep *s, const struct worker_view *v)
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
    complain ("%s: no worker of job %s has %s%s; 'squeue --jobs=%s' says %s; "
              "if it is gone, 'dl resume %s' makes another",
              s->dir, job->job, *text ? "begun: " : "started", text, job->job,
              *text ? "whether it is tried again" : "why", s->word);
    return true;
}

void say_workers_gone (const struct sweep *s)
{
    char text[PATH_MAX + 512] = "";

    if (s->nsubmits > 0)
        unseen_text (s, s->submits[s->nsubmits - 1].job, "", text, sizeof (text));
    complain ("%s: no worker is left%s%s; 'dl resume %s' goes on", s->dir, *text ? ": " : "", text,
              s->word);
}

bool workers_are_gone (struct sweep *s, struct watch_for_workers *w)
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
    if (!gone && !w->said && w->looks > 0 && s->state == SWEEP_RUNNING)
        w->said = say_idle (s, &v);
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
        usleep ((useconds_t)(look_every * 1e6));
        if (sweep_sync (s, &err) < 0)
            return fail (&err);
        if (workers_are_gone (s, &w))
            return EXIT_NO_WORKERS;
    }
    return print_end (s);
}

/* What was paused, stopped or killed is so when its workers have read it. */
static void wait_for_workers (const struct sweep *s, double deadline)
{
    double most = (double)(2 * s->exp->heartbeat + s->exp->grace);
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

/* It looks at the files, and asks Slurm only where nobody is at work. */
static int wait_for_end (struct sweep *s, double seconds)
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
            say_workers_gone (s);
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
    rv = wait_for_end (s, opt->timeout);
    sweep_close (s);
    return rv;
}
