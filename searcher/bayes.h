/* SPDX-License-Identifier: Apache-2.0 */
/* Bayesian optimisation: the point that a Gaussian process expects most of. */
#ifndef SEARCHER_BAYES_H
#define SEARCHER_BAYES_H

#include "searcher/view.h"

/* Trials at points of a sequence before there is a model. */
long bayes_start (const struct searcher *s);

/* Write the proposal for 'trial' to x, all parameters.  False: there is none
 * (no memory, degenerate points, no point that is new).  '*error', if error is
 * not NULL, is as gp_error() of the first objective, 1 if there is no model.
 */
bool bayes_propose (const struct searcher *s,
                    const struct view *v,
                    long trial,
                    double *x,
                    double *error);

#endif
