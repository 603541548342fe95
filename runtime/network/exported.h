/* SPDX-License-Identifier: Apache-2.0 */
/* Check variables that the user exported and the plugin would have set differently. */
#pragma once

#include "runtime/rank/task.h"

enum { EXPORTED_LINES = 8, EXPORTED_LINE = 320 };

/* Check the exported addresses, ports and interfaces that ranks use to meet, as strictly as those
 * that the plugin sets: the variables of t->environment, and the interface of NCCL.  'ours' lists
 * names that the user did not set ("A,B").  The rank on the master checks addresses and ports, the
 * first rank of each node interfaces.  Returns the number of lines written.
 */
int exported_check (const struct task *t, const char *ours,
                    char lines[EXPORTED_LINES][EXPORTED_LINE]);

/* Set t->facts to the interface that reaches the MASTER_ADDR that the user exported.  Returns
 * whether it differs from that of the plugin's own master, in the variables of t->environment.
 */
bool exported_way (struct task *t, const char *ours);

/* Whether the variable is set, and the user set it. */
bool exported_has (const struct task *t, const char *ours, const char *name);

/* Whether another process of this node listens at the port, or users may not listen there; errno
 * says which.
 */
bool exported_port_is_taken (int port);
