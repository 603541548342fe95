/* SPDX-License-Identifier: Apache-2.0 */
/* What a gradient does to a parameter. */
#pragma once

#include "runtime/ps/wire.h"

enum { PS_SLOTS = 2 }; /* values that a rule keeps for each parameter */

struct ps_rule {
    const char *name;
    unsigned slots;
    bool replaces; /* gradients are not added, the last one counts */
    void (*apply) (const struct ps_spec *s,
                   uint32_t time, /* 1 for the first */
                   float *const value[1 + PS_SLOTS],
                   const float *gradient,
                   size_t n);
};

/* By enum slurmdl_ps_rule; NULL: no such rule. */
const struct ps_rule *ps_rule (uint32_t rule);

/* sum[i] += more[i] */
void ps_add (float *sum, const float *more, size_t n);
