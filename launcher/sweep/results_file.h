/* SPDX-License-Identifier: Apache-2.0 */
/* results.h5: all trials of an experiment in one HDF5 file. */
#pragma once

#include "launcher/sweep/sweep.h"

enum results_outcome {
    RESULTS_FAILED = -1,
    RESULTS_WHOLE,
    RESULTS_DAMAGED, /* some metrics could not be read; 'err' names the first file */
};

/* Write the file (doc/formats.md) with the state of 's', replacing the old one by rename(2).
 * Metrics that the old one has are taken from it, if it is this experiment's and its checksum is
 * right.
 */
enum results_outcome results_write (const struct sweep *s, const char *path,
                                    struct slurmdl_error *err);

/* Whether the sweep has ended, and results.h5 is not there or older. */
bool results_are_stale (const struct sweep *s);

/* Write results.h5 if it is stale: the worker that was to do that may have
 * died.  -1 if that cannot be, with a line.
 */
int results_renew (const struct sweep *s, struct slurmdl_error *err);

/* Trials of which results.h5 lacks rows that could not be read. */
long results_damaged (const struct sweep *s);
