/* SPDX-License-Identifier: Apache-2.0 */
/* Several objectives: Pareto ranks, hypervolume and its expected improvement.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* All m objectives (1 .. PARETO_MAX) are to be minimised.  Row i of y is the
 * values y[i * m ...] of a trial.  A row with a value that is not finite is a
 * bad trial: every good one dominates it, and it dominates none.
 *
 * No function depends on the order of the rows but by rounding, and by ties,
 * which go to the smaller index.  Those that return an int return 0, or -1
 * with errno (ENOMEM, EINVAL) and then have written nothing.
 */
enum { PARETO_MAX = 8 };

/* ---- order ---- */

/* rank[i]: 0 for the rows that none dominates, 1 for those that none of the
 * rest dominates, ... (K. Deb and others, IEEE Transactions on Evolutionary
 * Computation 6, 2002; found as X. Zhang and others do, ibid. 19, 2015).
 * Equal rows share a rank; bad ones share the last.
 */
int pareto_ranks (const double *y, int64_t n, int64_t m, int64_t *rank);

/* distance[i]: how lonely a row is among those of its rank (Deb, 2002): the
 * sum over the objectives of the distance between its two neighbours as a part
 * of the range, INFINITY for the first and the last.  0 for bad rows.
 */
int pareto_crowding (const double *y, int64_t n, int64_t m, const int64_t *rank, double *distance);

/* ---- volume ---- */

/* The 'want' (at most n) best rows, rank by rank, of the last rank those that
 * keep most of the volume below a reference just beyond the worst values.
 */
int pareto_best (const double *y, int64_t n, int64_t m, int64_t want, int64_t *best);

/* ---- expected improvement ---- */

/* What no row dominates below the reference, a point of finite values, cut into
 * boxes (R. Lacour, K.
 * Klamroth and C. M. Fonseca, Computers and Operations Research 79, 2017): n +
 * 1 at most for two objectives, 2n + 1 for three, and some n^(m/2) above.
 */
struct pareto_boxes;

/* NULL with errno on failure.  Keeps none of its arguments. */
struct pareto_boxes *pareto_boxes_create (const double *y, int64_t n, int64_t m,
                                          const double *reference);
void pareto_boxes_destroy (struct pareto_boxes *b);

/* Logarithm of the volume that a trial is expected to add if its objectives
 * are independent and normal, deviation[k] > 0: the sum over the boxes of a
 * product (K. Yang and others, Journal of Global Optimization 75, 2019; S.
 * Daulton and others, arXiv 2006.05078).  Accurate in the far tails (as S.
 * Ament and others, arXiv 2310.20708), so that it orders hopeless candidates
 * too: finite up to some 1e150 deviations from the front.
 */
double pareto_log_ehvi (const struct pareto_boxes *b, const double *mean, const double *deviation);
