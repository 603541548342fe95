/* SPDX-License-Identifier: Apache-2.0 */
/* Several objectives: Pareto ranks, hypervolume and its expected improvement.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All m objectives (1 .. PARETO_MAX) are to be minimised.  Row i of y is the
 * values y[i * m ...] of a trial.  A row with a value that is not finite is a
 * bad trial: every good row dominates it, and it dominates none.
 *
 * Results depend on the order of the rows only through rounding and ties, which
 * go to the smaller index.  Functions that return an int return 0, or -1 with
 * errno (ENOMEM, EINVAL) and then leave the output unchanged.
 */
enum { PARETO_MAX = 8 };

/* ---- order ---- */

/* rank[i] is 0 for rows that none dominates, 1 for rows that none of the rest
 * dominates, ... (K. Deb and others, IEEE Transactions on Evolutionary
 * Computation 6, 2002; computed as by X. Zhang and others, ibid. 19, 2015).
 * Equal rows share a rank; bad rows share the last one.
 */
int pareto_ranks (const double *y, int64_t n, int64_t m, int64_t *rank);

/* distance[i] is the crowding distance within the rank (Deb, 2002): the sum
 * over the objectives of the distance between the two neighbours, relative to
 * the range; INFINITY for the first and the last row, 0 for bad rows.
 */
int pareto_crowding (const double *y, int64_t n, int64_t m, const int64_t *rank, double *distance);

/* ---- volume ---- */

/* Choose the 'want' (at most n) best rows, rank by rank; of the last rank that
 * fits in part, those that keep the most volume below a reference just beyond
 * the worst values.
 */
int pareto_best (const double *y, int64_t n, int64_t m, int64_t want, int64_t *best);

/* ---- expected improvement ---- */

/* The region below the reference, a point of finite values, that no row
 * dominates, cut into boxes (R. Lacour, K. Klamroth and C. M. Fonseca,
 * Computers and Operations Research 79, 2017): at most n + 1 for two
 * objectives, 2n + 1 for three, about n^(m/2) for more.
 */
struct pareto_boxes;

/* Returns NULL with errno on failure.  The arguments may be freed afterwards. */
struct pareto_boxes *pareto_boxes_create (const double *y, int64_t n, int64_t m,
                                          const double *reference);
void pareto_boxes_destroy (struct pareto_boxes *b);

/* Log of the volume that a trial is expected to add if its objectives are
 * independent and normal with deviation[k] > 0: a sum over the boxes of a
 * product (K. Yang and others, Journal of Global Optimization 75, 2019; S.
 * Daulton and others, arXiv 2006.05078).  Accurate far out in the tails (as S.
 * Ament and others, arXiv 2310.20708), so that it also ranks hopeless
 * candidates: finite up to about 1e150 deviations from the front.
 */
double pareto_log_ehvi (const struct pareto_boxes *b, const double *mean, const double *deviation);
