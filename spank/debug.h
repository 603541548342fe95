/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-debug: what explains a hang. */
#pragma once

#include <slurm/spank.h>

/* Set the variables that tell why a step hangs, and start the watcher of this
 * node; after nccl_task().
 */
void debug_task (spank_t sp);
