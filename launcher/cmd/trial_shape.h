/* SPDX-License-Identifier: Apache-2.0 */
/* Choose nodes and ranks for the GPUs of a trial. */
#pragma once

#include "launcher/config/edit.h"

struct experiment;
struct start_options;

/* If '*e' requests a number of GPUs but no nodes, choose nodes, ranks and a partition,
 * print the choice, and read the experiment again with it.  '*e' was read from 'path'
 * with 'edit'.  Returns an exit status; '*e' is freed unless that is 0.
 */
int gpus_to_nodes (struct experiment **e, const char *path, const struct edit *edit,
                   const struct start_options *opt);
