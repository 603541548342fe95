/* SPDX-License-Identifier: Apache-2.0 */
/* Points from CMA-ES, as part of the state of a sampler. */
#pragma once

#include "searcher/state/state.h"

/* Bytes for an evolution over n parameters; they are zero until it begins. */
int64_t evolve_room (size_t n, int64_t population);

/* Begin from the best trials so far and from the results of an earlier search. */
void evolve_begin (const struct searcher *s, void *evolution);
bool evolve_begun (const void *evolution);

/* Learn the value of a trial; does nothing before evolve_begin(). */
void evolve_learn (const struct searcher *s, void *evolution, long trial);
void evolve_point (const struct searcher *s, const void *evolution, long trial, double *x);
