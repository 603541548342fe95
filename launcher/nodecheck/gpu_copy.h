/* SPDX-License-Identifier: Apache-2.0 */
/* Check the memory of each GPU through the CUDA driver. */
#ifndef LAUNCHER_NODECHECK_GPU_COPY_H
#define LAUNCHER_NODECHECK_GPU_COPY_H

#include "launcher/nodecheck/output.h"

/* Findings where the memory of a GPU returns other data, or copies slowly. */
void check_copy (const struct check_place *p);

#endif
