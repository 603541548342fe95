/* SPDX-License-Identifier: Apache-2.0 */
/* Report the versions of software that the ranks must agree on. */
#pragma once

#include "launcher/nodecheck/output.h"

/* Facts that ranks are compared by: versions of the kernel and of NCCL;
 * of Python and its packages.
 */
void check_versions (const struct check_place *p);
void check_python (const struct check_place *p);
