/* SPDX-License-Identifier: Apache-2.0 */
/* Learn from an earlier experiment, or from results of another program. */
#pragma once

#include "launcher/config/diagnostics.h"

struct experiment;

/* Read the finished trials of the experiment 'warm_start', or the results in
 * the JSON file of that name, whose points lie in this space into
 * search.known; does nothing without it.  Reading the file
 * does not do it, because the other folder need not stay: the first log entry
 * has a copy.  Returns -1 after a problem.
 */
int warm_start (struct experiment *e, struct problems *p);
