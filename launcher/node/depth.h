/* SPDX-License-Identifier: Apache-2.0 */
/* The depth of a check, and its limits of time. */
#pragma once

enum check_level { LEVEL_NONE, LEVEL_QUICK, LEVEL_FULL };

/* "none", "quick", "full"; -1 if it is none of them. */
int gather_level (const char *word);

/* Seconds from the first rank to the result, and to its parts: facts and
 * checks of each node; then what needs two nodes.
 */
struct gather_times {
    double probes, facts, peers, all;
};
extern const struct gather_times gather_times[3]; /* by level */
