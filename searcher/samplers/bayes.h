/* SPDX-License-Identifier: Apache-2.0 */
/* Bayesian optimisation: the point of largest expected improvement. */
#pragma once

#include "searcher/models/training_set.h"

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
