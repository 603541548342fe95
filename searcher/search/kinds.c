/* SPDX-License-Identifier: Apache-2.0 */
/* The table of search methods: a scheduler and a sampler each. */
#include "searcher/search/kinds.h"

#include <string.h>

#include "searcher/samplers/samplers.h"
#include "searcher/schedulers/schedulers.h"

enum { FULL = NEED_MAX_TRIALS, RUNGS = NEED_MAX_TRIALS | HAS_RUNGS };

/* clang-format off */
const struct searcher_kind searcher_kinds[] = {
    { "auto",
      "picks and mixes the methods below; promotes like asha if max_length is above 1",
      FULL | HAS_RUNGS | HAS_OBJECTIVES, &schedule_auto, &sample_auto },
    { "single",
      "one trial: first choices, and the middle of each range",
      0, &schedule_single, &sample_middle },
    { "grid",
      "a trial for each point of a grid",
      NEED_GRID_COUNT, &schedule_grid, &sample_grid },
    { "random",
      "max_trials random points, each trained in full",
      FULL | HAS_OBJECTIVES, &schedule_full, &sample_random },
    { "sobol",
      "max_trials points of a scrambled Sobol sequence",
      FULL | HAS_OBJECTIVES, &schedule_full, &sample_sobol },
    { "lhs",
      "max_trials points of a Latin hypercube",
      FULL | HAS_OBJECTIVES, &schedule_full, &sample_lhs },
    { "tpe",
      "tree-structured Parzen estimator: points like the best ones so far",
      FULL | HAS_OBJECTIVES, &schedule_full, &sample_tpe },
    { "gp",
      "Bayesian optimisation: a Gaussian process, expected improvement",
      FULL | HAS_OBJECTIVES, &schedule_full, &sample_gp },
    { "cmaes",
      "evolution strategy that learns a covariance matrix (CMA-ES with margin)",
      FULL, &schedule_full, &sample_cmaes },
    { "nsga2",
      "genetic algorithm for several metrics",
      FULL | HAS_OBJECTIVES, &schedule_full, &sample_nsga2 },
    { "asha",
      "random points; the best are trained longer, rung by rung",
      RUNGS, &schedule_asha, &sample_random },
    { "adaptive_asha",
      "several asha searches, some of which stop trials earlier",
      RUNGS, &schedule_adaptive, &sample_random },
    { "stopping_asha",
      "asha for trainers without checkpoints: trials continue or are stopped",
      FULL | HAS_REPORTS, &schedule_stop, &sample_random },
    { "adaptive_stopping",
      "several stopping_asha searches, some of which stop trials earlier",
      FULL | HAS_REPORTS, &schedule_adaptive_stop, &sample_random },
    { "pasha",
      "asha whose top rung rises only while the ranking is unclear",
      RUNGS, &schedule_pasha, &sample_random },
    { "halving",
      "successive halving: promotes once all trials of a rung are trained",
      RUNGS, &schedule_halving, &sample_random },
    { "hyperband",
      "halving in brackets, some of which stop trials earlier",
      HAS_RUNGS | CAN_MAX_TRIALS, &schedule_hyperband, &sample_random },
    { "async_hyperband",
      "hyperband's brackets, promoted as in asha",
      HAS_RUNGS | CAN_MAX_TRIALS, &schedule_async_hyperband, &sample_random },
    { "bohb",
      "hyperband whose points come from tpe",
      HAS_RUNGS | CAN_MAX_TRIALS, &schedule_hyperband, &sample_tpe },
    { "median",
      "stops trials that are worse than the median of the others' averages",
      FULL | HAS_REPORTS, &schedule_median, &sample_random },
    { "pbt",
      "population based training: the worst continue from the best's checkpoint",
      HAS_RUNGS, &schedule_population, &sample_lhs },
    { "custom",
      "your own program chooses the points: searcher.command",
      FULL | IS_CUSTOM, &schedule_full, &sample_random },
    { NULL, NULL, 0, NULL, NULL },
};
/* clang-format on */

const struct searcher_kind *kind_find (const char *name)
{
    for (const struct searcher_kind *k = searcher_kinds; name && k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

const struct search_sampler *kind_sampler (const struct search_config *config)
{
    return kind_find (config->sampler ? config->sampler : config->name)->sampler;
}
