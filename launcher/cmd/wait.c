/* SPDX-License-Identifier: Apache-2.0 */
/* dl wait: until an experiment has ended or was paused. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/options.h"
#include "launcher/session/open.h"
#include "launcher/sweep/queries.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"

static const double look_every = 1;

/* Whether a trial's last result had a number for it. */
static bool has_number (const struct sweep *s, size_t metric)
{
    for (long i = 1; i <= s->ntrials; i++) {
        const struct trial *t = sweep_trial (s, i);
        if (metric == 0 && isfinite (t->best))
            return true;
        if (metric > 0 && t->values && isfinite (t->values[metric]))
            return true;
    }
    return false;
}

static void print_numberless (const struct sweep *s)
{
    for (size_t i = 0; i < sweep_metrics (s); i++)
        if (!has_number (s, i))
            printf ("%s was never a finite number in %ld result%s: %s\n",
                    sweep_metric (s, i),
                    s->nresults,
                    s->nresults == 1 ? "" : "s",
                    i ? "the front is empty" : "there is no best trial");
}

void print_best (const struct sweep *s)
{
    const struct trial *t = sweep_trial (s, s->best);

    if (s->nresults)
        print_numberless (s);
    if (t)
        printf ("best %s %.6g: trial %ld at length %lld\n",
                s->exp->metric,
                t->best,
                s->best,
                (long long)t->best_length);
}

static double rest_until (double deadline)
{
    double left = deadline - monotonic ();

    return left < look_every ? left : look_every;
}

/* It looks at the files only: no question to Slurm, no worker asked. */
static int wait_for_end (struct sweep *s, double seconds)
{
    double deadline = seconds < 0 ? 1e300 : monotonic () + seconds;
    struct slurmdl_error err = { "" };
    double rest;

    while (s->state == SWEEP_RUNNING) {
        if ((rest = rest_until (deadline)) <= 0) {
            complain ("%s is still %s after %g s",
                      s->dir,
                      sweep_state_name (s->state),
                      seconds);
            return EXIT_TIMEOUT;
        }
        usleep ((useconds_t)(rest * 1e6));
        if (sweep_sync (s, &err) < 0)
            return fail (&err);
    }
    printf ("%s: %s, %ld trials\n",
            s->dir,
            sweep_state_name (s->state),
            s->ntrials);
    print_best (s);
    return state_status (s->state);
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
