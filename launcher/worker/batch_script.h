/* SPDX-License-Identifier: Apache-2.0 */
/* The script of the array tasks that are workers. */
#pragma once

#include "launcher/worker/executor.h"

/* Write the script of the array tasks, job.sh, into a folder. */
int script_write (const struct executor *x, const char *folder, struct slurmdl_error *err);
