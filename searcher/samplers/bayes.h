/* SPDX-License-Identifier: Apache-2.0 */
/* Bayesian optimisation: the point of largest expected improvement. */
#pragma once

#include "searcher/models/training_set.h"

/* Is the trial at a point of a sequence, as there are too few for a model? */
bool bayes_is_early (const struct searcher *s, long trial);

/* A model of a training set, fitted, for the proposal of 'trial'.  NULL: there
 * is none (no memory, degenerate points).  Reads the set until it is closed.
 */
struct hunt;
struct hunt *bayes_open (const struct searcher *s, const struct training_set *v, long trial);
void bayes_close (struct hunt *h);

/* How little it explains: gp_error() of the first objective. */
double bayes_error (const struct hunt *h);

/* Write the best point to x, all parameters.  False: there is none that is new.
 */
bool bayes_find (struct hunt *h, double *x);
