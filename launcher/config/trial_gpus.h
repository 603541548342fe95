/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a trial: in all, and on each of its nodes. */
#pragma once

#include "launcher/config/diagnostics.h"
#include "launcher/config/experiment.h"

/* GPUs of a trial on all of its nodes. */
int64_t experiment_gpus (const struct experiment *e);

/* The key that says how many, without "resources.". */
const char *experiment_gpus_key (const struct experiment *e);

/* Whether 'resources.sbatch_args' has one of these options (NULL-ended). */
bool experiment_has_option (const struct experiment *e, const char *const *names);

/* The same, of those that choose nodes and GPUs. */
bool experiment_places_itself (const struct experiment *e);

/* Divide 'slots_per_trial' among the nodes: fills 'nodes' and 'node_gpus', of
 * which 'given' says what the user has chosen.
 */
void experiment_share_gpus (struct experiment *e);

/* What the keys of a file that is not yet an experiment contradict. */
void experiment_check_gpus (const struct experiment *e, struct origin origin, struct problems *p);

/* Time of all trials that 'max_gpu_hours' allows, s; 0: no limit. */
double experiment_max_seconds (const struct experiment *e);
