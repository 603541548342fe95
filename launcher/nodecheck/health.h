/* SPDX-License-Identifier: Apache-2.0 */
/* Run checks, each in a process that may hang. */
#pragma once

#include "launcher/nodecheck/output.h"

enum check_scope { EVERY_RANK, FIRST_OF_NODE };

struct check_row {
    const char *name;
    enum check_level level; /* the lowest at which it runs */
    enum check_scope scope;
    enum severity hangs; /* severity of a check that does not end */
    void (*run) (const struct check_place *p);
};

/* Run the rows of the table that are for this level and rank, all at the same
 * time.  A check that has not ended after 'seconds' is killed and not waited
 * for.  Adds to the array 'findings', and groups of facts to 'facts'.
 */
void health_run (const struct check_row *table,
                 const struct check_place *place,
                 double seconds,
                 json_t *facts,
                 json_t *findings);
