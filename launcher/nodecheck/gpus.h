/* SPDX-License-Identifier: Apache-2.0 */
/* Check the NVIDIA GPUs of this process. */
#ifndef LAUNCHER_NODECHECK_GPUS_H
#define LAUNCHER_NODECHECK_GPUS_H

#include "launcher/nodecheck/output.h"

/* Check and report the GPUs that this rank sees. */
void check_gpus (const struct check_place *p);

/* The number of GPUs that Slurm gave to this process, by its variables. */
long gpus_given (void);

/* Whether these variables say that it has none; without Slurm all are its. */
bool gpus_none (void);

#endif
