/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: a pure function of their purpose. */
#include "searcher/numeric/rng.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

enum { TRIES = 100 };

/* The finaliser of splitmix64 (Stafford's variant 13). */
static uint64_t splitmix (uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C (0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C (0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* FNV-1a */
uint64_t rng_key (const char *name)
{
    uint64_t h = UINT64_C (0xcbf29ce484222325);

    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C (0x100000001b3);
    return h;
}

uint64_t rng_bits (uint64_t seed, uint64_t trial, uint64_t key, uint64_t draw)
{
    const uint64_t word[] = { seed, key, trial, draw };
    uint64_t h = 0;

    for (size_t i = 0; i < sizeof (word) / sizeof (word[0]); i++)
        h = splitmix ((h ^ word[i]) + UINT64_C (0x9e3779b97f4a7c15));
    return h;
}

double rng_unit (uint64_t seed, uint64_t trial, uint64_t key)
{
    return (double)(rng_bits (seed, trial, key, 0) >> 11) * 0x1p-53;
}

double rng_next (struct rng *r)
{
    uint64_t bits = rng_bits (r->seed, r->trial, r->key, r->draw++);

    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller (1958) */
double rng_gauss (struct rng *r)
{
    double radius = sqrt (-2 * log (rng_next (r)));

    return radius * cos (0x1.921fb54442d18p+2 * rng_next (r));
}

/* Draw from the exponential distribution that resembles it most; low > 0. */
static double tail_between (struct rng *r, double low, double high)
{
    double rate = (low + sqrt (low * low + 4)) / 2, z = low;
    double part = 1 - exp (-rate * (high - low));

    for (int i = 0; i < TRIES; i++) {
        z = low - log (1 - part * rng_next (r)) / rate;
        if (rng_next (r) <= exp (-(z - rate) * (z - rate) / 2))
            break;
    }
    return z;
}

/* Near 0: draw from the normal or the uniform distribution. */
static double middle_between (struct rng *r, double low, double high)
{
    bool wide = high - low > 2.5;
    double z = 0;

    for (int i = 0; i < TRIES; i++) {
        z = wide ? rng_gauss (r) : low + (high - low) * rng_next (r);
        if (wide ? z >= low && z <= high : rng_next (r) <= exp (-z * z / 2))
            break;
    }
    return z;
}

/* Rejection sampling from a distribution that suits the interval (C. P. Robert,
 * Simulation of Truncated Normal Variables, 1995): at least 0.48 of the draws
 * are accepted, wherever the interval is.
 */
double rng_gauss_between (struct rng *r, double low, double high)
{
    double z = low > 0    ? tail_between (r, low, high)
               : high < 0 ? -tail_between (r, -high, -low)
                          : middle_between (r, low, high);

    return z < low ? low : z > high ? high : z;
}

int64_t rng_pick (struct rng *r, int64_t n)
{
    int64_t k = rng_next (r) * n;

    return k < n ? k : n - 1;
}

uint64_t rng_below (uint64_t seed, uint64_t trial, uint64_t key, uint64_t bound)
{
    /* The high half of bits * bound is uniform if the few products whose low
     * half is below 2^64 mod bound are drawn again (D. Lemire, 2019).
     */
    uint64_t skip = -bound % bound;
    uint64_t draw = 0;
    unsigned __int128 product;

    do
        product = (unsigned __int128)rng_bits (seed, trial, key, draw++) * bound;
    while ((uint64_t)product < skip);
    return product >> 64;
}
