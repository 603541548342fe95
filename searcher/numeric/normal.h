/* SPDX-License-Identifier: Apache-2.0 */
/* The density of the normal distribution. */
#pragma once

/* log (sqrt (2 pi)): the logarithm of the density at z is -z * z / 2 - LOG_SQRT_2PI */
#define LOG_SQRT_2PI 0x1.d67f1c864beb5p-1
