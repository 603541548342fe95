/* SPDX-License-Identifier: Apache-2.0 */
/* Trials at the points of a Latin hypercube. */
#include "searcher/rng.h"
#include "searcher/state.h"

enum { ROUNDS = 4 };

/* A permutation of 0 .. n-1 as a function: a Feistel network over the next
 * even number of bits, walked until it comes back into the range (J. Black
 * and P. Rogaway, 2002).
 */
static uint64_t permute (uint64_t i, uint64_t n, uint64_t seed, uint64_t key)
{
    int half = 1;

    while (n > UINT64_C (1) << (2 * half))
        half++;
    do {
        uint64_t mask = (UINT64_C (1) << half) - 1;
        uint64_t left = i >> half;
        uint64_t right = i & mask;
        for (uint64_t round = 1; round <= ROUNDS; round++) {
            uint64_t t = left ^ (rng_bits (seed, right, key, round) & mask);
            left = right;
            right = t;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* The trials of the plan: others may be added later. */
static int64_t planned (const struct searcher *s)
{
    int64_t trials = 0;

    for (int i = 0; i < s->brackets; i++)
        trials += searcher_bracket (s, i)->capacity;
    return trials;
}

/* Each of the n equal parts of each dimension holds one trial. */
static void lhs_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);
    int64_t n = planned (s);

    for (int64_t i = 0; i < s->n; i++) {
        const struct dim *d = dims + i;
        uint64_t part = permute ((trial - 1) % n, n, s->seed, d->key);
        x[i] = space_at (d, (part + rng_unit (s->seed, trial, d->key)) / n);
    }
}

const struct sampler sample_lhs = {
    .point = lhs_point,
};
