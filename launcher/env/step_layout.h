/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and tasks of a step, from its options. */
#pragma once

#include "launcher/env/plan.h"

/* --distribution, and then nodes, tasks and where they are. */
int plan_distribution (struct env_plan *p, struct slurmdl_error *err);
int plan_layout (struct env_plan *p, struct slurmdl_error *err);
