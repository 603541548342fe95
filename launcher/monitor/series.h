/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a monitor: named values over time, of bounded size. */
#pragma once

#include <stddef.h>

#include "runtime/metrics/file.h"

/* A file of the layout of runtime/metrics/file.h: whole at every instant.  A
 * value that is equal to the one before is not written again.  doc/formats.md
 * has the names.
 *
 * When the file has 'max' rows its samples (but the first) are joined two by
 * two, and from then on twice as many samples are joined to one: of a counter
 * the last value stays, of a gauge the mean.
 */

enum series_kind { SERIES_GAUGE, SERIES_COUNTER };

struct series;

/* Create DIR/STEM.h5 (or STEM.1.h5, ...), in that folder if it is open (else
 * -1); returns NULL with 'err' set.
 */
struct series *series_create (const char *dir, int folder, const char *stem,
                              const struct metrics_file_about *about, size_t max,
                              struct slurmdl_error *err);

/* Write what is left and close; NULL is accepted. */
void series_destroy (struct series *s);

/* A value of the sample that is being taken; NaN is none, and not put.  A name
 * of 64 bytes or more, and the 4,097th, is left out.
 */
void series_put (struct series *s, enum series_kind kind, double value, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* End the sample.  Returns -1 with errno if it could not be written: it is
 * then lost, and the next one has all values.
 */
int series_end (struct series *s, double time);
