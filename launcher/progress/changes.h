/* SPDX-License-Identifier: Apache-2.0 */
/* Print the progress of an experiment as lines, for a file or a pipe. */
#pragma once

#include "launcher/sweep/sweep.h"

/* What has already been printed.  Initialize to {0} and set 'start'. */
struct changes {
    double start;              /* monotonic() time from which elapsed time counts */
    struct reported *reported; /* one for each trial */
    long nreported;
    bool full; /* whether the last report called the disk full */
};

/* Print a line for each new result, failure, rejection and recovery of ranks. */
void changes_say (struct changes *c, const struct sweep *s);

/* Mark everything up to now as printed without printing it. */
void changes_skip (struct changes *c, const struct sweep *s);
void changes_free (struct changes *c);
