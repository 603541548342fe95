/* SPDX-License-Identifier: Apache-2.0 */
/* The samplers: where points come from. */
#pragma once

#include "searcher/models/models.h"
#include "searcher/state/state.h"

extern const struct search_sampler sample_middle, sample_grid, sample_random, sample_sobol,
    sample_lhs, sample_tpe, sample_gp, sample_cmaes, sample_nsga2, sample_auto;

/* For the grid sampler, whose points determine the number of trials. */
extern const struct search_scheduler schedule_grid;

/* Points for other samplers, not masked. */
void sobol_point (const struct searcher *s, long trial, double *x);
void tpe_point (const struct searcher *s, long trial, double *x);
void nsga2_point (const struct searcher *s, long trial, double *x);

/* ---- Bayesian optimisation: the point of largest expected improvement (bayes.c) ---- */

/* Whether the trial takes a point of a sequence, because there are too few for a model. */
bool bayes_is_early (const struct searcher *s, long trial);

/* A model fitted to a training set, for the proposal of 'trial'.  Returns NULL
 * if there is none (out of memory, degenerate points).  The set must stay valid
 * until it is closed.
 */
struct hunt;
struct hunt *bayes_open (const struct searcher *s, const struct training_set *v, long trial);
void bayes_close (struct hunt *h);

/* gp_error() of the first objective: how little the model explains. */
double bayes_error (const struct hunt *h);

/* Write the best point to x, all parameters.  Returns false if no new point is found. */
bool bayes_find (struct hunt *h, double *x);

/* ---- points from CMA-ES, as part of the state of a sampler (evolve.c) ---- */

/* Bytes for an evolution over n parameters; they are zero until it begins. */
int64_t evolve_room (size_t n, int64_t population);

/* Begin from the best trials so far and from the results of an earlier search. */
void evolve_begin (const struct searcher *s, void *evolution);
bool evolve_begun (const void *evolution);

/* Learn the value of a trial; does nothing before evolve_begin(). */
void evolve_learn (const struct searcher *s, void *evolution, long trial);
void evolve_point (const struct searcher *s, const void *evolution, long trial, double *x);
