/* SPDX-License-Identifier: Apache-2.0 */
/* Make a run of a flow file: its folder, the frozen code and the script of its
 * jobs. */
#pragma once

#include "launcher/flow/run_folder.h"

/* Make it of r->flow, with the parameters of 'st'; it recurs every so many
 * seconds (0: it does not).  Returns -1 with 'err'.
 */
int flow_make (struct flow_run *r, const struct settings *st, double every,
               struct slurmdl_error *err);
