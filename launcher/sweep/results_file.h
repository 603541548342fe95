/* SPDX-License-Identifier: Apache-2.0 */
/* results.h5: all trials of an experiment in one HDF5 file. */
#pragma once

#include "launcher/sweep/sweep.h"

enum results_outcome {
    RESULTS_FAILED = -1,
    RESULTS_WHOLE,
    RESULTS_DAMAGED, /* written without metrics that could not be read; 'err' says why */
};

/* Write the state of 's' to 'path' in the format of doc/formats.md, and replace an older file by
 * rename(2).  Metrics that the older file already has are copied from it, if it belongs to this
 * experiment and its checksum is correct.
 */
enum results_outcome results_write (const struct sweep *s, const char *path,
                                    struct slurmdl_error *err);

/* Whether the sweep has ended, and results.h5 is absent or older. */
bool results_are_stale (const struct sweep *s);

/* Write results.h5 if it is stale, because the worker that should have written it may have died.
 * Returns -1 with 'err' if this user cannot write it.
 */
int results_renew (const struct sweep *s, struct slurmdl_error *err);

/* The number of trials of which results.h5 lacks rows, because they could not be read. */
long results_damaged (const struct sweep *s);
