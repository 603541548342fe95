/* SPDX-License-Identifier: Apache-2.0 */
/* Run the steps of a flow as processes of this machine. */
#pragma once

#include "launcher/flow/run_folder.h"

/* Run what is left, so many tasks at once.  Prints a line for each that ends.
 * Returns an exit status.
 */
int flow_local (const struct flow_run *r, long workers);

/* The process of this machine that works at a flow, 0: there is none. */
pid_t flow_local_process (const struct flow_run *r);
