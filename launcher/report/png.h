/* SPDX-License-Identifier: Apache-2.0 */
/* An image as PNG in the text of a page. */
#pragma once

#include <stdio.h>

/* Write the PNG of 'pixels' (rows from the top, 1 to 4 channels of 8 bits:
 * grey, grey and alpha, RGB, RGBA) in base64, uncompressed.  Returns 0, or -1
 * with errno ENOMEM.
 */
int png_put (FILE *f,
             unsigned width,
             unsigned height,
             unsigned channels,
             const unsigned char *pixels);
