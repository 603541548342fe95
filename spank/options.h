/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the plugin adds to srun, sbatch and salloc. */
#pragma once

#include <slurm/spank.h>

#include "runtime/rank/condition.h"

/* Register the options that the site has. */
int options_register (spank_t sp);

/* Read the site's policy, before the options of the user are known.  What is
 * wrong in it is told to root, and to nobody else.
 */
void options_begin (int ac, char **av);

/* In slurmd: log what is wrong in the site's policy, also to syslog. */
void options_log (int ac, char **av);

/* In srun: report the options of the job that the site has switched off. */
void options_lost (void);

/* Find the values that hold, by what is known of the step: the user's, else
 * those of the site.  'loud': a task tells what the policy takes away; srun
 * tells a user who gave some option what is wrong in the site's policy.
 */
void options_decide (const struct step_facts *facts, bool loud, int ac, char **av);
