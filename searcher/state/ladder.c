/* SPDX-License-Identifier: Apache-2.0 */
/* Exact arithmetic of successive halving: rungs, brackets and their trials. */
#include "searcher/state/state.h"

#include <math.h>

enum {
    DECIMALS = 1000, /* of a divisor: three */
    DIVISOR_MAX = 1000,
};

/* The largest product is trials * weight, below 2^24 * p^31 * lcm (1 .. 32) *
 * 32; with p at most 10^6 that is below 2^720.
 */
struct wide {
    uint64_t word[12];
};

enum { WORDS = sizeof (struct wide) / sizeof (uint64_t) };

static struct wide wide_of (uint64_t value)
{
    return (struct wide){ { value } };
}

static struct wide wide_mul (struct wide a, uint64_t factor)
{
    unsigned __int128 carry = 0;

    for (int i = 0; i < WORDS; i++) {
        carry += (unsigned __int128)a.word[i] * factor;
        a.word[i] = carry;
        carry >>= 64;
    }
    return a;
}

static struct wide wide_mul_power (struct wide a, uint64_t factor, int power)
{
    while (power-- > 0)
        a = wide_mul (a, factor);
    return a;
}

static struct wide wide_add (struct wide a, struct wide b)
{
    unsigned __int128 carry = 0;

    for (int i = 0; i < WORDS; i++) {
        carry += (unsigned __int128)a.word[i] + b.word[i];
        a.word[i] = carry;
        carry >>= 64;
    }
    return a;
}

static bool wide_above (struct wide a, struct wide b)
{
    for (int i = WORDS; i-- > 0;)
        if (a.word[i] != b.word[i])
            return a.word[i] > b.word[i];
    return false;
}

/* min (floor (a / b), max) */
static int64_t wide_div (struct wide a, struct wide b, int64_t max)
{
    int64_t low = 0;

    while (low < max) {
        int64_t middle = low + (max - low + 1) / 2;
        if (wide_above (wide_mul (b, middle), a))
            max = middle - 1;
        else
            low = middle;
    }
    return low;
}

static uint64_t gcd (uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

const char *ratio_from (struct ratio *d, double divisor)
{
    double scaled = floor (divisor * DECIMALS + 0.5);
    uint64_t common;

    if (!isfinite (divisor) || divisor <= 1)
        return "divisor is not above 1";
    if (divisor > DIVISOR_MAX)
        return "divisor is above 1000";
    if (scaled / DECIMALS != divisor)
        return "divisor has more than three decimals";
    common = gcd (scaled, DECIMALS);
    d->p = scaled / common;
    d->q = DECIMALS / common;
    return NULL;
}

int64_t ratio_share (struct ratio d, int64_t n)
{
    return n * d.q / d.p;
}

int ladder_height (struct ratio d, long rungs, int64_t length, int64_t trials)
{
    int64_t least = length < trials ? length : trials;
    int height = 1;

    while (height < rungs && height < RUNGS_MAX
           && !wide_above (wide_mul_power (wide_of (1), d.p, height),
                           wide_mul_power (wide_of (least), d.q, height)))
        height++;
    return height;
}

int64_t ladder_rung (struct ratio d, int64_t length, int steps)
{
    int64_t rung = wide_div (wide_mul_power (wide_of (length), d.q, steps),
                             wide_mul_power (wide_of (1), d.p, steps), length);

    return rung > 1 ? rung : 1;
}

/* Two rungs of the same length are merged.  Determined keeps both: a trial is
 * then compared twice without training in between, and the second comparison,
 * among a few survivors, only loses good trials.
 */
int ladder_build (struct ratio d, int rungs, int64_t length, int64_t *out)
{
    int n = 0;

    for (int steps = rungs - 1; steps >= 0; steps--) {
        int64_t rung = ladder_rung (d, length, steps);
        if (n == 0 || out[n - 1] != rung)
            out[n++] = rung;
    }
    return n;
}

int ladder_extend (struct ratio d, int64_t *rungs, int n, int64_t length)
{
    if (n == RUNGS_MAX)
        return -1;
    while (rungs[n - 1] < length) {
        __int128 next = (__int128)rungs[n - 1] * d.p / d.q;
        if (next == rungs[n - 1])
            next++;
        rungs[n] = next < length && n < RUNGS_MAX - 1 ? (int64_t)next : length;
        n++;
    }
    return n;
}

int bracket_heights (enum search_mode mode, int rungs, int *heights)
{
    int lowest = 0, n = 0;

    switch (mode) {
    case SEARCH_AGGRESSIVE:
        lowest = rungs;
        break;
    case SEARCH_STANDARD:
        lowest = (rungs - 1) / 2 + 1;
        break;
    case SEARCH_CONSERVATIVE:
        lowest = 1;
        break;
    }
    for (int height = rungs; lowest > 0 && height >= lowest; height--)
        heights[n++] = height;
    return n;
}

/* d^(height - 1) / height, times q^(RUNGS_MAX - 1) * lcm (1 .. RUNGS_MAX) */
static struct wide bracket_weight (struct ratio d, int height)
{
    struct wide w = wide_of (UINT64_C (144403552893600) / height);

    w = wide_mul_power (w, d.p, height - 1);
    return wide_mul_power (w, d.q, RUNGS_MAX - height);
}

int bracket_trials (struct ratio d, int64_t total, const int *heights, int n, int64_t *trials)
{
    struct wide sum = wide_of (0);

    for (int i = 0; i < n; i++)
        sum = wide_add (sum, bracket_weight (d, heights[i]));
    trials[0] = total;
    for (int i = 1; i < n; i++) {
        struct wide share = wide_mul (bracket_weight (d, heights[i]), total);
        trials[i] = wide_div (share, sum, total);
        if (trials[i] < 1)
            trials[i] = 1;
        trials[0] -= trials[i];
    }
    /* Only a divisor close to 1 makes more brackets than trials. */
    while (trials[0] < 1)
        trials[0] += trials[--n];
    return n;
}

void bracket_limits (int64_t limit, const int64_t *trials, int n, int64_t *limits)
{
    int64_t all = limit < n ? n : limit;

    for (int i = 0; i < n; i++)
        limits[i] = limit == 0 ? trials[i] : all / n + (i < all % n);
}

int64_t bracket_width (struct ratio d, int height, int64_t max)
{
    return wide_div (wide_mul_power (wide_of (1), d.p, height - 1),
                     wide_mul_power (wide_of (1), d.q, height - 1), max);
}
