/* SPDX-License-Identifier: Apache-2.0 */
/* The samplers: where points come from. */
#pragma once

#include "searcher/state/state.h"

extern const struct search_sampler sample_middle, sample_grid, sample_random, sample_sobol,
    sample_lhs, sample_tpe, sample_gp, sample_cmaes, sample_nsga2, sample_auto;

/* For the grid sampler, whose points determine the number of trials. */
extern const struct search_scheduler schedule_grid;

/* Points for other samplers, not masked. */
void sobol_point (const struct searcher *s, long trial, double *x);
void tpe_point (const struct searcher *s, long trial, double *x);
void nsga2_point (const struct searcher *s, long trial, double *x);
