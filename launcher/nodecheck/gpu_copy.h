/* SPDX-License-Identifier: Apache-2.0 */
/* Check the memory of each GPU through the CUDA driver. */
#pragma once

#include "launcher/nodecheck/output.h"

/* Findings where the memory of a GPU returns other data, or copies slowly. */
void check_copy (const struct check_place *p);
