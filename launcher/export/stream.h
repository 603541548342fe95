/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment as lines of JSON, for the exporters of the Python package. */
#pragma once

#include <stdio.h>

#include "launcher/sweep/sweep.h"

/* What a reader was told of a trial. */
struct told_trial {
    enum sweep_trial_state state;
    int64_t length;
    long over;
    int fails;
    bool final;
    long n; /* with repeats: of its point, results that are there */
};

struct export_stream {
    FILE *f;
    const struct sweep *sweep;
    struct told_trial *trials;
    long ntrials;
    char **names; /* of the metrics that the reader knows, by number */
    size_t nnames;
};

/* One value a line:
 *
 *   {"experiment": ...}         first: its names, metrics and space
 *   {"trial": N, ...}           before the rows of N, and when it has changed
 *   {"metric": I, "name": ...}  before the first row of metric I
 *   [N, I, ATTEMPT, STEP, TIME, VALUE]
 *   {"flush": true}             all there is now was said
 *   {"end": true}               last
 *
 * Numbers that are not finite are NaN, Infinity and -Infinity.
 */

/* The first line.  Returns -1 if out of memory. */
int stream_begin (struct export_stream *x, FILE *f, const struct sweep *s);

/* The trials that are open, or have changed since they were told last, with all
 * rows that no later attempt has superseded; then "flush".  A trial whose
 * metrics cannot all be read has those that can, and is told again.
 *
 * Returns -1 if out of memory or, see ferror(), if the reader is gone.
 */
int stream_changes (struct export_stream *x);

/* The last line. */
void stream_end (struct export_stream *x);
void stream_free (struct export_stream *x);
