/* SPDX-License-Identifier: Apache-2.0 */
/* A small chart of one line, of Braille dots where there is UTF-8. */
#pragma once

#include "launcher/progress/screen.h"

/* Of 'n' finite values in their order, across the window; the highest and the
 * lowest value stand beside it.
 */
void line_chart (struct screen *c, const double *values, long n, int height);
