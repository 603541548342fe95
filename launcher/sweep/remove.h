/* SPDX-License-Identifier: Apache-2.0 */
/* Remove the folder of an experiment. */
#pragma once

#include "runtime/base/error.h"

/* Remove the experiment 'dir' with all that is in it; 'dir' has a '/'.  Links
 * are removed, not followed, and what is mounted there stays.
 */
int sweep_remove (const char *dir, struct slurmdl_error *err);
