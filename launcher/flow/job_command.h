/* SPDX-License-Identifier: Apache-2.0 */
/* What a job of a flow runs: a task, or the submission of the rest. */
#pragma once

#include "launcher/flow/run_folder.h"

/* The flow is the one that this job was submitted for, or nothing is run.
 * Returns an exit status, after a line; flow_close() in any case.
 */
int flow_open_pinned (const struct settings *st, struct flow_run *r);

/* A number of the command line, -1: it is none. */
long flow_number (const char *text);
