/* SPDX-License-Identifier: Apache-2.0 */
/* The Yeo-Johnson transformation, which makes values look normal. */
#pragma once

#include <stdint.h>

/* Write to warped[] the n values y[], standardised, then through the power
 * transformation of I.-K. Yeo and R. A. Johnson (Biometrika 87, 2000) of
 * largest likelihood, standardised again, and within -6 .. 3.  y[] is left
 * standardised.
 */
void warp_values (double *y, int64_t n, double *warped);
