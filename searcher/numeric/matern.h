/* SPDX-License-Identifier: Apache-2.0 */
/* Matern covariances of many pairs of points at once. */
#pragma once

#include <stdint.h>

/* r2[i] += p[i] * scale */
void matern_add (double *r2, const double *p, double scale, int64_t n);
/* r2[i] += (z[i] - u)^2 * scale, or (z[i] != u) * scale */
void matern_add_square (double *r2, const double *z, double u, double scale, int64_t n);
void matern_add_unequal (double *r2, const double *z, double u, double scale, int64_t n);

/* Replace squared distances by covariances (1 + a + a^2/3) e^-a, a = sqrt(5
 * r2); 'slope', unless NULL, receives their derivatives by r2.
 */
void matern (double *r2, double *slope, int64_t n);
