/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a search: active parameters, and the constraint. */
#pragma once

#include "searcher/state/state.h"

/* Set inactive parameters to NaN. */
void point_mask (const struct searcher *s, double *x);

/* Whether it is a point of the space, masked as it should be. */
bool point_fits (const struct searcher *s, const double *x);

/* Whether the constraint allows a masked point. */
bool point_allowed (const struct searcher *s, const double *x);

/* Whether no trial has this point yet. */
bool point_is_new (const struct searcher *s, const double *x);

/* Whether random draws can find an allowed point. */
bool point_possible (const struct searcher *s);

/* Draw the point of a trial, not masked; an allowed one if possible at all. */
void point_random (const struct searcher *s, long trial, double *x);
