/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: a pure function of their purpose. */
#pragma once

#include <stdint.h>

/* The seed of the experiment, a trial and a key, which stands for one
 * parameter, name a stream of random numbers.  No generator state is kept, so
 * that the order of draws does not matter.
 */

/* Key of a parameter: a hash of its name.  A parameter keeps its values when
 * others are added, removed or reordered.
 */
uint64_t rng_key (const char *name);

/* 64 random bits: draw number 'draw' of a stream. */
uint64_t rng_bits (uint64_t seed, uint64_t trial, uint64_t key, uint64_t draw);

/* Uniform in [0, 1), a multiple of 2^-53. */
double rng_unit (uint64_t seed, uint64_t trial, uint64_t key);

/* A sequence of numbers from one stream. */
struct rng {
    uint64_t seed, trial, key, draw;
};
double rng_next (struct rng *r);             /* uniform in (0, 1) */
double rng_gauss (struct rng *r);            /* standard normal */
int64_t rng_pick (struct rng *r, int64_t n); /* one of 0 .. n - 1 */

/* Standard normal, conditioned on low .. high, which may be infinite or far from 0. */
double rng_gauss_between (struct rng *r, double low, double high);

/* Uniform over 0 .. bound - 1, without bias. */
uint64_t rng_below (uint64_t seed, uint64_t trial, uint64_t key, uint64_t bound);
