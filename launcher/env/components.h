/* SPDX-License-Identifier: Apache-2.0 */
/* Join the components of a heterogeneous step. */
#pragma once

#include "launcher/env/slurm_options.h"

/* What one step with the nodes and tasks of all 'n' components would ask: the
 * caller frees it.  ASK_HET has the number of nodes of each.  'where' is
 * "FILE:LINE".  -1 with what is wrong.
 */
int components_join (struct ask *to,
                     const struct ask *part,
                     int n,
                     const char *where,
                     struct slurmdl_error *err);
