/* SPDX-License-Identifier: Apache-2.0 */
/* What changes in an experiment, as lines into a file or a pipe. */
#pragma once

#include "launcher/sweep/sweep.h"

/* What was already said; {0} at the start. */
struct changes {
    double start;              /* of the times, by monotonic() */
    struct reported *reported; /* of each trial */
    long nreported;
    bool full; /* the disk, as was said last */
};

/* Print a line for each new result, failure and rejection, and what was done about ranks. */
void changes_say (struct changes *c, const struct sweep *s);

/* Take all that there is for said. */
void changes_skip (struct changes *c, const struct sweep *s);
void changes_free (struct changes *c);
