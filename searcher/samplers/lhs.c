/* SPDX-License-Identifier: Apache-2.0 */
/* Points of a Latin hypercube. */
#include "searcher/numeric/rng.h"
#include "searcher/samplers/samplers.h"

enum { ROUNDS = 4 };

/* A permutation of 0 .. n-1 as a function: a Feistel network over the next even
 * number of bits, repeated until the result is in range (J. Black and P.
 * Rogaway, 2002).
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

/* The trials of a hypercube: the planned ones, or those added later. */
struct cube {
    int64_t before, trials;
};

static int64_t lhs_room (const struct search_request *request)
{
    (void)request;
    return sizeof (struct cube);
}

static void lhs_start (struct searcher *s)
{
    struct cube *c = searcher_at (s, s->at_sample);

    c->before = s->created;
    c->trials = s->trials - s->created;
}

/* Each of the n equal intervals of each dimension gets one trial. */
static void lhs_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);
    const struct cube *c = searcher_at (s, s->at_sample);
    int64_t n = c->trials > 0 ? c->trials : 1, rank = trial - 1 - c->before;

    for (int64_t i = 0; i < s->n; i++) {
        const struct dim *d = dims + i;
        uint64_t part = permute (rank % n, n, s->seed, d->key + c->before);
        x[i] = space_at (d, (part + rng_unit (s->seed, trial, d->key)) / n);
    }
}

const struct search_sampler sample_lhs = {
    .room = lhs_room,
    .start = lhs_start,
    .point = lhs_point,
    .extended = lhs_start,
};
