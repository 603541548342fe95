/* SPDX-License-Identifier: Apache-2.0 */
/* Exact arithmetic of successive halving: rungs, brackets and their trials. */
#pragma once

#include <stdint.h>

#include "searcher/searcher.h"

/* All arithmetic is exact, with integers: floor (log (243) / log (3)) is 4 in floating point. */

enum { RUNGS_MAX = 32 }; /* also of brackets */

/* The divisor as the fraction p / q. */
struct ratio {
    uint32_t p, q;
};

/* Convert 'divisor' as the decimal number that the user wrote: 2.2 is 11 / 5.
 * Returns NULL, or a sentence that says what is wrong with it.
 */
const char *ratio_from (struct ratio *d, double divisor);

/* floor (n / d) */
int64_t ratio_share (struct ratio d, int64_t n);

/* Number of possible rungs: at most 'rungs', d^(rungs - 1) <= length, trials. */
int ladder_height (struct ratio d, long rungs, int64_t length, int64_t trials);

/* max (floor (length / d^steps), 1): the length of the rung 'steps' below the top. */
int64_t ladder_rung (struct ratio d, int64_t length, int steps);

/* Write the lengths of the rungs, shortest first, without duplicates.  Returns
 * how many there are.
 */
int ladder_build (struct ratio d, int rungs, int64_t length, int64_t *out);

/* Append rungs to n of them, each 'd' times as long as the last, up to
 * 'length', which becomes the last one.  Returns how many there are, -1 if
 * there is no room.
 */
int ladder_extend (struct ratio d, int64_t *rungs, int n, int64_t length);

/* Write the heights of the brackets in a mode, highest first.  Returns how many
 * there are, 0 if the mode is unknown.
 */
int bracket_heights (enum search_mode mode, int rungs, int *heights);

/* Divide 'total' trials among n brackets by the weights d^(height - 1) /
 * height, rounded down, at least 1 each, the remainder to the first.  Returns
 * the number of brackets that get trials.
 */
int bracket_trials (struct ratio d, int64_t total, const int *heights, int n, int64_t *trials);

/* Divide 'limit' concurrent trials among n brackets, at least 1 each; without a
 * limit (0) each bracket may run all of its trials.
 */
void bracket_limits (int64_t limit, const int64_t *trials, int n, int64_t *limits);

/* min (floor (d^(height - 1)), max): number of trials that fill a bracket. */
int64_t bracket_width (struct ratio d, int height, int64_t max);
