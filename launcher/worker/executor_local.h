/* SPDX-License-Identifier: Apache-2.0 */
/* The executor that starts workers as processes of this machine. */
#pragma once

#include "launcher/worker/executor.h"

extern const struct executor_ops executor_local;

/* Whether this machine has what a trial needs. */
int local_check (const struct experiment *e, struct slurmdl_error *err);
