/* SPDX-License-Identifier: Apache-2.0 */
/* --dl-bind: advice on the cores and GPUs of a task. */
#pragma once

#include "runtime/rank/binding.h"

/* Report hidden GPUs, lost CPUs and far cores; where the rank is if asked.
 * 'now' is the affinity of this process after the binding.
 */
void advice_report (const struct binding *b, const struct cpu_set *now);
