/* SPDX-License-Identifier: Apache-2.0 */
/* Start the workers of an experiment, or make one and start them. */
#pragma once

#include "launcher/sweep/sweep.h"
#include "launcher/sys/command_line.h"

struct start_options; /* launcher/cmd/commands.h */

/* Start workers and follow them, as the options say, but only those that are
 * missing: Slurm may have some of arrays that were submitted before.
 * 'running': also count tasks that run, which are not about to end.  Returns
 * an exit status.
 */
int start_missing_workers (struct sweep *s, const struct start_options *opt, bool running);

/* Change keys of the file of an experiment that has no workers, as --set says:
 * those of what Slurm is asked for, which the search does not depend on.  The
 * experiment is read again, and '*s' NULL after a failure.  Returns an exit
 * status.
 */
int change_settings (struct sweep **s, const struct command_line *line,
                     const struct start_options *opt);

/* Make a new experiment of 'e', which is taken, and start its workers.
 * Returns an exit status.
 */
int run_new (struct experiment *e, const struct command_line *line,
             const struct start_options *opt);

/* Make a new experiment of 'e', which is taken, and call 'f' for it.  Returns
 * its answer, or an exit status.
 */
int make_new_and (struct experiment *e, const struct command_line *line,
                  const struct start_options *opt, int (*f) (struct sweep *s));

/* Another command was faster: it starts the workers.  Returns EXIT_OK. */
int say_others_start (const struct sweep *s);
