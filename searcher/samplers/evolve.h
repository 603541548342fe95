/* SPDX-License-Identifier: Apache-2.0 */
/* Points from CMA-ES, as part of a sampler's state. */
#pragma once

#include "searcher/state/state.h"

/* Bytes of an evolution over n parameters, which is zero until it begins. */
int64_t evolve_room (size_t n, int64_t population);

/* Begin from the best of the trials so far and what is known from before. */
void evolve_begin (const struct searcher *s, void *evolution);
bool evolve_begun (const void *evolution);

/* The trial has a value; nothing if it has not begun. */
void evolve_learn (const struct searcher *s, void *evolution, long trial);
void evolve_point (const struct searcher *s, const void *evolution, long trial, double *x);
