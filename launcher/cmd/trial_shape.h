/* SPDX-License-Identifier: Apache-2.0 */
/* The GPUs of a trial become nodes and ranks. */
#pragma once

#include "launcher/config/edit.h"

struct experiment;
struct start_options;

/* If '*e', which was read from 'path' with 'edit', asks for a number of GPUs
 * and does not say on which nodes: choose nodes, ranks and a partition, say so,
 * and read it again with these.  Returns an exit status; '*e' is gone unless
 * that is 0.
 */
int gpus_to_nodes (struct experiment **e, const char *path, const struct edit *edit,
                   const struct start_options *opt);
