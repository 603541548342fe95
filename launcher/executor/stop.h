/* SPDX-License-Identifier: Apache-2.0 */
/* Cancel the jobs of an experiment. */
#pragma once

#include "launcher/sweep/sweep.h"

/* Cancel the jobs of an experiment, or, with the option --state=PENDING of
 * scancel's, those that wait in the queue; NULL: all.  Returns -1 with 'err'
 * if Slurm did not do it.
 */
int executor_cancel (const struct sweep *s, const char *option, struct slurmdl_error *err);
