/* SPDX-License-Identifier: Apache-2.0 */
/* dl wait: until an experiment has ended or was paused. */
#include "launcher/cmd/wait.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/fault.h"
#include "launcher/cmd/follow.h"
#include "launcher/format/trials_table.h"
#include "launcher/progress/workers.h"
#include "launcher/session/open.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"

static const double look_every = 1;
static const double idle_every = 30; /* whether there are workers */

static double time_until (double deadline)
{
    double left = deadline - monotonic ();

    return left < look_every ? left : look_every;
}

/* Nobody may ever come.  Returns whether a line was said. */
static bool say_idle (const struct sweep *s)
{
    struct worker_view v = workers_look (s);
    const struct submit *job = v.alive ? NULL : workers_awaited (s, &v);
    char idle[128];

    workers_idle_text (s, &v, idle, sizeof (idle));
    if (*idle)
        complain (
            "%s: %s; 'dl resume %s' starts workers", s->dir, idle, s->word);
    else if (job)
        complain ("%s: no worker of job %s has started; 'squeue --jobs=%s' "
                  "says why; if it is gone, 'dl resume %s' makes another",
                  s->dir,
                  job->job,
                  job->job,
                  s->word);
    free (v.list);
    return *idle || job;
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
    double next = monotonic () + idle_every;

    while (s->state == SWEEP_RUNNING) {
        usleep ((useconds_t)(look_every * 1e6));
        if (sweep_sync (s, &err) < 0)
            return fail (&err);
        if (s->state == SWEEP_RUNNING && monotonic () >= next) {
            struct worker_view v = workers_look (s);
            bool idle = !isnan (workers_idle (s, &v));
            free (v.list);
            if (idle)
                return EXIT_NO_WORKERS;
            next = monotonic () + idle_every;
        }
    }
    return print_end (s);
}

/* What was paused, stopped or killed is so when its workers have read it. */
static void wait_for_workers (const struct sweep *s, double deadline)
{
    double most = (double)(2 * s->exp->heartbeat + s->exp->grace);
    double end = fmin (deadline, monotonic () + most);
    bool asked = s->state == SWEEP_PAUSED || s->state == SWEEP_STOPPED
                 || s->state == SWEEP_KILLED;
    long alive = 1;

    while (asked && alive > 0 && monotonic () < end) {
        struct worker_view v = workers_look (s);
        alive = v.alive;
        free (v.list);
        if (alive > 0)
            usleep (200000);
    }
}

/* It looks at the files only: no question to Slurm, no worker asked. */
static int wait_for_end (struct sweep *s, double seconds)
{
    double deadline = seconds < 0 ? 1e300 : monotonic () + seconds;
    struct slurmdl_error err = { "" };
    double next = monotonic () + idle_every;
    double pause;

    while (s->state == SWEEP_RUNNING) {
        if ((pause = time_until (deadline)) <= 0) {
            complain ("%s is still %s after %g s",
                      s->dir,
                      sweep_state_name (s->state),
                      seconds);
            return EXIT_TIMEOUT;
        }
        usleep ((useconds_t)(pause * 1e6));
        if (sweep_sync (s, &err) < 0)
            return fail (&err);
        if (s->state == SWEEP_RUNNING && monotonic () >= next)
            next = say_idle (s) ? INFINITY : monotonic () + idle_every;
    }
    wait_for_workers (s, deadline);
    return print_end (s);
}

int cmd_wait (const struct settings *st)
{
    struct sweep *s;
    int rv = open_experiment (st, st->args[0], &s);

    if (rv)
        return rv;
    rv = wait_for_end (s, st->timeout);
    sweep_close (s);
    return rv;
}
