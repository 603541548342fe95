/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment asks for, as a sum of its settings. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct experiment;

/* Whether a trial is several processes that Slurm starts as a step; those of a
 * job with roles are one.
 */
bool experiment_has_ranks (const struct experiment *e);

/* The nodes that an attempt needs at least, and those that a job asks for. */
int64_t experiment_least_nodes (const struct experiment *e);
int64_t experiment_job_nodes (const struct experiment *e);

/* Whether {NAME} is in the entrypoint. */
bool experiment_has_placeholder (const struct experiment *e, const char *name);

/* Number of trials that the search may make, 0 if unknown. */
long experiment_trials (const struct experiment *e);

/* What its searcher is and needs (the bits of searcher_kinds). */
int experiment_needs (const struct experiment *e);

/* The searcher of that name; NULL if there is none. */
const struct searcher_kind *searcher_kind_of (const char *name);
