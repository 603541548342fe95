/* SPDX-License-Identifier: Apache-2.0 */
/* Check the NVIDIA GPUs of this process. */
#pragma once

#include "launcher/nodecheck/output.h"

/* Check and report the GPUs that this rank sees. */
void check_gpus (const struct check_place *p);

/* Whether Slurm's variables say that this process has none; without Slurm all
 * are its.
 */
bool gpus_none (void);

/* Whether this rank looks at GPU 'i': ranks that all see all GPUs of the node
 * look at some of them each.
 */
bool gpu_is_mine (const struct check_place *p, long i);
