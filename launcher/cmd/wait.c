/* SPDX-License-Identifier: Apache-2.0 */
/* dl wait: until an experiment has ended or was paused. */
#include <stdio.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/cmd/fault.h"
#include "launcher/cmd/follow.h"
#include "launcher/format/trials_table.h"
#include "launcher/session/open.h"
#include "launcher/sweep/states.h"
#include "launcher/sweep/sweep.h"
#include "launcher/sys/say.h"
#include "runtime/base/clock.h"

static const double look_every = 1;

static double time_until (double deadline)
{
    double left = deadline - monotonic ();

    return left < look_every ? left : look_every;
}

/* It looks at the files only: no question to Slurm, no worker asked. */
static int wait_for_end (struct sweep *s, double seconds)
{
    double deadline = seconds < 0 ? 1e300 : monotonic () + seconds;
    struct slurmdl_error err = { "" };
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
    }
    printf ("%s: %s, %ld trials\n", s->dir, state_text (s), s->ntrials);
    print_best (s);
    print_failed (s);
    print_fault (s);
    print_results (s);
    return follow_status (s);
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
