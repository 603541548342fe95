/* SPDX-License-Identifier: Apache-2.0 */
/* What of the code has changed since the run before. */
#pragma once

#include "launcher/code/archive.h"
#include "launcher/flow/run_folder.h"

/* Say which files have changed, on all of which steps without 'code' depend.
 * Nothing is said if none have, or if there was no run before of this user's
 * that froze its code.
 */
void flow_say_code_change (const struct flow_run *r, const struct code_files *files,
                           const struct code_archive *now);
