/* SPDX-License-Identifier: Apache-2.0 */
/* The Pareto front of the trials of an experiment with several metrics. */
#pragma once

#include <stdbool.h>

#include "launcher/sweep/sweep.h"

/* Which trials no other one beats in one metric without being beaten in
 * another; trial N is at N - 1.  The caller frees it; NULL if out of memory.
 */
bool *sweep_front (const struct sweep *s);
