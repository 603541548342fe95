/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin would give one rank of a planned step. */
#pragma once

#include "launcher/env/plan.h"
#include "launcher/env/variables.h"

/* Why a variable is not known before the job runs. */
enum plan_doubt { PLAN_PORTS, PLAN_INTERFACE, PLAN_DOUBTS };
extern const char *const plan_doubts[];

struct plan_rank {
    long rank, node, local;
    const char *host;
    const char *role; /* "" if there is none */
    long role_index;
    char gpus[256], cpus[256], nic[64]; /* "" if not known */
    struct env_entries vars;
    struct env_entries unknown; /* their value is one of plan_doubts */
};

/* What one rank gets; plan_rank_free() in any case. */
int plan_rank (struct env_plan *p,
               long rank,
               struct plan_rank *r,
               struct slurmdl_error *err);
void plan_rank_free (struct plan_rank *r);
