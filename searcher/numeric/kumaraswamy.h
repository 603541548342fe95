/* SPDX-License-Identifier: Apache-2.0 */
/* The Kumaraswamy warp: widens one part of a range and narrows another. */
#pragma once

#include <stdint.h>

/* The distribution function of P. Kumaraswamy (Journal of Hydrology 46, 1980),
 * w = 1 - (1 - u^a)^b, from [0, 1] to itself; with a = b = 1 it is u, and what
 * is below 0 stays as it is.  The same bits on all processors.
 *
 * Of n numbers u: w, and, if not NULL, the derivatives by log a and log b.
 */
void kumaraswamy (const double *u, double a, double b, int64_t n, double *w, double *by_a,
                  double *by_b);

/* Of one point: u[i] with a[i] and b[i]. */
void kumaraswamy_point (const double *u, const double *a, const double *b, int64_t n, double *w);
