/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's calls share. */
#pragma once

#include "runtime/ps/link.h"

/* 'err' is emptied; 0: requests of this iteration may be made, -1: this is no
 * worker, or it is broken. */
int psclient_ready (struct slurmdl_ps *ps, struct slurmdl_error *err);

/* For slurmdl_ps_wait(); NULL: out of memory. */
struct ps_ticket *psticket_create (struct slurmdl_ps *ps);

bool psclient_all_sent (struct slurmdl_ps *ps, int64_t arg);
