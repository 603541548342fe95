/* SPDX-License-Identifier: Apache-2.0 */
/* The Kumaraswamy warp: widens one part of a range and narrows another. */
#pragma once

#include <stdint.h>

/* The distribution function of P. Kumaraswamy (Journal of Hydrology 46, 1980),
 * w = 1 - (1 - u^a)^b, maps [0, 1] to itself; a = b = 1 is the identity, and
 * negative u stay unchanged.  The bits are the same on all processors.
 *
 * For n numbers u, compute w and, unless NULL, the derivatives by log a and log
 * b.
 */
void kumaraswamy (const double *u, double a, double b, int64_t n, double *w, double *by_a,
                  double *by_b);

/* The same for one point: u[i] with a[i] and b[i]. */
void kumaraswamy_point (const double *u, const double *a, const double *b, int64_t n, double *w);
