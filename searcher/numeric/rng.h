/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: a function of what they are for. */
#pragma once

#include <stdint.h>

/* A stream is named by the seed of the experiment, a trial and a key, which
 * stands for one parameter.  There is no generator to keep: the order in which
 * numbers are drawn does not matter.
 */

/* Key of a parameter: a hash of its name, so that a parameter keeps its
 * values when others are added, removed or written in another order.
 */
uint64_t rng_key (const char *name);

/* 64 random bits: number 'draw' of a stream. */
uint64_t rng_bits (uint64_t seed, uint64_t trial, uint64_t key, uint64_t draw);

/* Uniform in [0, 1), a multiple of 2^-53. */
double rng_unit (uint64_t seed, uint64_t trial, uint64_t key);

/* A sequence of numbers of one stream. */
struct rng {
    uint64_t seed, trial, key, draw;
};
double rng_next (struct rng *r);             /* uniform in (0, 1) */
double rng_gauss (struct rng *r);            /* standard normal */
int64_t rng_pick (struct rng *r, int64_t n); /* one of 0 .. n - 1 */

/* Standard normal, given that it is in low .. high, which may be infinite and
 * may be far away from 0.
 */
double rng_gauss_between (struct rng *r, double low, double high);

/* Uniform in 0 .. bound - 1, each value equally likely. */
uint64_t rng_below (uint64_t seed, uint64_t trial, uint64_t key, uint64_t bound);
