/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a search: which parameters are active, what is allowed. */
#pragma once

#include "searcher/state/state.h"

/* Set what is not active to NaN. */
void point_mask (const struct searcher *s, double *x);

/* Is it a point of the space, masked as it should be? */
bool point_fits (const struct searcher *s, const double *x);

/* Is a masked point allowed by the constraint? */
bool point_allowed (const struct searcher *s, const double *x);

/* Is it the point of no trial so far? */
bool point_is_new (const struct searcher *s, const double *x);

/* Can one be found at random? */
bool point_possible (const struct searcher *s);

/* Draw the point of a trial, not masked; allowed if at all possible. */
void point_random (const struct searcher *s, long trial, double *x);
