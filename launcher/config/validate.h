/* SPDX-License-Identifier: Apache-2.0 */
/* Check an experiment beyond the types of its keys. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* Check what depends on several keys, and finish the struct. */
void experiment_check (struct experiment *e, config_t *cf, struct problems *p);

/* Part of it, for a step of a flow: resources.sbatch_args as one string, "-w n4
 * --exclusive", become words; empty ones are none.
 */
void experiment_split_sbatch_args (struct experiment *e);
