/* SPDX-License-Identifier: Apache-2.0 */
/* Learn from an earlier experiment, or from the results of another program. */
#pragma once

#include "launcher/config/diagnostics.h"

struct experiment;

/* If searcher.warm_start is set, add results from there to search.known: the finished trials of an
 * earlier experiment, or the results in a JSON file, as far as their points lie in this search
 * space.  Returns -1 after adding to 'p'.
 *
 * Reading an experiment file does not do this, because the other folder may be gone later: the
 * first log entry keeps a copy of the results.
 */
int warm_start (struct experiment *e, struct problems *p);
