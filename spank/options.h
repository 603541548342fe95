/* SPDX-License-Identifier: Apache-2.0 */
/* The options that the plugin adds to srun, sbatch and salloc. */
#ifndef SPANK_OPTIONS_H
#define SPANK_OPTIONS_H

#include <slurm/spank.h>

/* Register the options that the site has. */
int options_register (spank_t sp);

/* Read the site's policy, and begin with its defaults. */
void options_begin (int ac, char **av);

#endif
