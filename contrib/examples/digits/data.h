/* SPDX-License-Identifier: Apache-2.0 */
/* The images of handwritten digits (DATA.md). */
#pragma once

#include "mlp.h"

/* Read digits.csv.gz.  Returns 0, or -1 after a line on stderr. */
int data_read (const char *path, struct data *d);
void data_free (struct data *d);

/* The first images train, the others validate: different writers.  Both are
 * parts of 'all', which frees them.
 */
void data_split (const struct data *all, struct data *train, struct data *valid);
