/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-nccl: the network variables of a task. */
#pragma once

#include <slurm/spank.h>

/* Set the network variables of one task and say what is wrong with those that
 * its user exported.
 */
void nccl_task (spank_t sp);
