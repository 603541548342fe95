/* SPDX-License-Identifier: Apache-2.0 */
/* The output file of the monitor: a time series of named values, bounded in size. */
#pragma once

#include <stddef.h>

#include "runtime/metrics/file.h"

/* The file has the layout of runtime/metrics/file.h and is consistent at every
 * instant.  A value that equals the previous one is not written again.
 * doc/formats.md lists the names.
 *
 * Once the file reaches 'max' rows, all samples except the first are merged in
 * pairs, and each later row covers twice as many samples as before.  Merging
 * keeps the last value of a counter and the mean of a gauge.
 */

enum series_kind { SERIES_GAUGE, SERIES_COUNTER };

struct series;

/* Create DIR/STEM.h5, or STEM.1.h5 and so on if that exists.  'folder' is a
 * descriptor of DIR, or -1 to open it by name.  Returns NULL with 'err' set.
 */
struct series *series_create (const char *dir, int folder, const char *stem,
                              const struct metrics_file_about *about, size_t max,
                              struct slurmdl_error *err);

/* Write pending samples and close.  NULL is accepted. */
void series_destroy (struct series *s);

/* Add a value to the current sample.  NaN is ignored.  So are names of 64 bytes
 * or more, and new names once there are 4,096.
 */
void series_put (struct series *s, enum series_kind kind, double value, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

/* Finish the current sample.  Returns -1 with errno if it could not be written.
 * That sample is lost, and the next one contains every value.
 */
int series_end (struct series *s, double time);
