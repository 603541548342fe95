/* SPDX-License-Identifier: Apache-2.0 */
/* results.h5: all trials of an experiment in one HDF5 file. */
#ifndef LAUNCHER_RESULTS_RESULTS_FILE_H
#define LAUNCHER_RESULTS_RESULTS_FILE_H

#include "launcher/sweep/sweep.h"

/* Write the file (doc/formats.md) with the state of 's', in place of the one
 * that has the name: whoever opens it gets the old one or the new one.  The
 * metrics of attempts that the old one has are taken from it, if it is of
 * this experiment and its checksum is right.
 */
int results_write (const struct sweep *s,
                   const char *path,
                   struct slurmdl_error *err);

#endif
