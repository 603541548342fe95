/* SPDX-License-Identifier: Apache-2.0 */
/* What the user exported, where the plugin would have set something else. */
#pragma once

#include "runtime/rank/task.h"

enum { EXPORTED_LINES = 8, EXPORTED_LINE = 320 };

/* Look at the exported addresses, ports and interfaces by which ranks meet, as
 * hard as at those that are set: the variables of t->environment, and the
 * interface of NCCL.  'ours' lists names that are not the user's ("A,B").  The
 * master's rank looks at addresses and ports, the first rank of each node at
 * interfaces.  Returns how many lines there are.
 */
int exported_check (const struct task *t, const char *ours,
                    char lines[EXPORTED_LINES][EXPORTED_LINE]);

/* The interface on the way to a MASTER_ADDR that the user exported, into
 * t->facts.  Returns whether it is another one than that of the plugin's own
 * master, of variables that are in t->environment.
 */
bool exported_way (struct task *t, const char *ours);

/* Whether the environment has the variable, and it is the user's. */
bool exported_has (const struct task *t, const char *ours, const char *name);

/* Whether another process of this node listens there, or it is not for users:
 * errno says which.
 */
bool exported_port_is_taken (int port);
