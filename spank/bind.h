/* SPDX-License-Identifier: Apache-2.0 */
/* What bind.c and advice.c share. */
#ifndef SPANK_BIND_H
#define SPANK_BIND_H

#include "runtime/rank/binding.h"
#include "spank/context.h"

/* The affinity of this process. */
int bind_cpus (struct cpu_set *s);

/* Tell of hidden GPUs, lost CPUs and far cores; where the rank is if asked. */
void bind_tell (const struct binding *b);

#endif
