/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-debug: what explains a hang. */
#ifndef SPANK_DEBUG_H
#define SPANK_DEBUG_H

#include <slurm/spank.h>

/* Set the variables that tell why a step hangs, and start the watcher of this
 * node; after nccl_task().
 */
void debug_task (spank_t sp);

#endif
