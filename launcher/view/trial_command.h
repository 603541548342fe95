/* SPDX-License-Identifier: Apache-2.0 */
/* The command line that trains a trial's point again, from the beginning. */
#pragma once

#include "launcher/sweep/sweep.h"

/* "cd DIR && env DL_SEED=1 ... COMMAND", for a shell: also with its values in
 * the variables that the trainer would find them in.  The caller frees it.
 */
char *trial_command (const struct sweep *s, long trial, int64_t length);
