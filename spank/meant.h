/* SPDX-License-Identifier: Apache-2.0 */
/* Whether default=auto is meant for the program of a step. */
#pragma once

#include <stdbool.h>

#include <slurm/spank.h>

/* 'named': the site gave the default to a partition, so that all but programs
 * of MPI and independent tasks are meant.  Else the program has to say so
 * itself.  Reads the program and its script, as the user.
 */
bool meant_for (spank_t sp, bool named);
