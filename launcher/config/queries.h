/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment asks for, as a sum of its settings. */
#pragma once

#include "launcher/config/experiment.h"
#include "runtime/rank/plugin_options.h"

/* Whether a trial is several processes that Slurm starts as a step; those of a
 * job with roles are one.
 */
bool experiment_has_ranks (const struct experiment *e);

/* Whether {NAME} is in the entrypoint. */
bool experiment_has_placeholder (const struct experiment *e, const char *name);

/* The options of the Slurm plugin that it has keys for: call 'f' for each that
 * is set.
 */
void experiment_each_plugin_option (const struct experiment *e,
                                    void (*f) (enum plugin_option_id id, const char *key,
                                               const char *value, void *arg),
                                    void *arg);

/* Add them to a command line, "--dl-bind=closest".  -1: out of memory. */
int experiment_add_plugin_options (const struct experiment *e, char ***words);

/* Number of trials that the search may make, 0 if unknown. */
long experiment_trials (const struct experiment *e);

/* What its searcher is and needs (the bits of searcher_kinds). */
int experiment_needs (const struct experiment *e);

/* The searcher of that name; NULL if there is none. */
const struct searcher_kind *searcher_kind_of (const char *name);
