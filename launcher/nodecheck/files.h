/* SPDX-License-Identifier: Apache-2.0 */
/* Check the working directory and TMPDIR. */
#pragma once

#include "launcher/nodecheck/output.h"

/* Findings where this rank cannot use the working directory, or TMPDIR. */
void check_directory (const struct check_place *p);
void check_temporary (const struct check_place *p);
