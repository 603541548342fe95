/* SPDX-License-Identifier: Apache-2.0 */
/* Wait for the end of an experiment whose workers somebody else has started. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Looks for workers of a running experiment, of one who waits for its end. */
struct watch_for_workers {
    double next; /* look */
    int looks;
    bool said; /* that nobody is at work, but somebody may come */
};

/* To be called again and again.  Returns true if no worker is left: all are
 * gone, and Slurm, which is asked then, has no task of the experiment either.
 */
bool workers_are_gone (struct sweep *s, struct watch_for_workers *w);

/* Say so, with the reason. */
void say_workers_gone (const struct sweep *s);

/* Wait until the experiment has ended or was paused, and print how.  Returns an
 * exit status; EXIT_NO_WORKERS if it still runs and no worker is at work.
 */
int wait_while_at_work (struct sweep *s);
