/* SPDX-License-Identifier: Apache-2.0 */
/* Which trials and which columns a user wants to see, in which order. */
#pragma once

#include "launcher/sweep/columns.h"
#include "launcher/sys/command_line.h"

struct selection {
    struct columns all;
    struct logged_metrics logged; /* of its last columns */
    struct columns shown;         /* of --columns, in that order, else all but those
                                     of 'logged'; its list has columns of 'all' */
    bool chosen;                  /* --columns was given */
    bool complete;                /* all trials are in 'logged' */
    long *trials;                 /* numbers, in the order of --sort, or best first */
    long n;
};

/* By --columns, --where, --sort and --trials.  Returns an exit status, after
 * a line on stderr if it is not EXIT_OK; selection_free() in any case.
 */
int selection_make (struct selection *sel, const struct sweep *s, const struct command_line *line);
void selection_free (struct selection *sel);
