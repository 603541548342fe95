/* SPDX-License-Identifier: Apache-2.0 */
/* The Yeo-Johnson transformation, which makes values look normal. */
#pragma once

#include <stdint.h>

/* Standardise the n values y[] in place, and write to warped[] their power
 * transformation of maximum likelihood (I.-K. Yeo and R. A. Johnson, Biometrika
 * 87, 2000), standardised again and limited to -6 .. 3.
 */
void warp_values (double *y, int64_t n, double *warped);
