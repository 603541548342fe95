/* SPDX-License-Identifier: Apache-2.0 */
/* Start what is left of a run, as jobs or on this machine. */
#pragma once

#include "launcher/flow/run_folder.h"

/* 'again': it was started before.  Returns an exit status, after a line. */
int flow_start (const struct flow_run *r, const struct settings *st, bool again);
