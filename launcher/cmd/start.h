/* SPDX-License-Identifier: Apache-2.0 */
/* Start the workers of an existing or a new experiment. */
#pragma once

#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"

struct start_options; /* launcher/cmd/commands.h */

/* Start missing workers and follow them, as the options say.  Tasks that earlier
 * arrays still have in Slurm's queue are not missing: pending ones and, with 'running',
 * running ones.  Pass 'running' unless those are about to end.  Returns an exit status.
 */
int start_missing_workers (struct sweep *s, const struct start_options *opt, bool running);

/* Apply --set to the file of an experiment that has no workers.  Only keys of the
 * resource request may change, because the search does not depend on them.  Reads the
 * experiment again and sets '*s' to NULL on failure.  Returns an exit status.
 */
int change_settings (struct sweep **s, const struct command_line *line,
                     const struct start_options *opt);

/* Create a new experiment from 'e', taking ownership of it, and start its workers.
 * Returns an exit status.
 */
int run_new (struct experiment *e, const struct command_line *line,
             const struct start_options *opt);

/* Create a new experiment from 'e', taking ownership of it, and call 'f'.  Returns
 * the result of 'f', or an exit status if the experiment could not be created.
 */
int make_new_and (struct experiment *e, const struct command_line *line,
                  const struct start_options *opt, int (*f) (struct sweep *s));

/* Print that another command got there first and starts the workers.  Returns EXIT_OK. */
int print_others_start (const struct sweep *s);
