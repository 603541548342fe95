/* SPDX-License-Identifier: Apache-2.0 */
/* Tell processes that train from those that only start or watch others. */
#pragma once

#include <stddef.h>

#include "launcher/sys/step_processes.h"

enum process_kind {
    PROCESS_MAIN,       /* the user's program */
    PROCESS_HELPER,     /* a descendant of the user's program, such as a data loader */
    PROCESS_LAUNCHER,   /* a shell, torchrun or the like, which waits for others */
    PROCESS_BACKGROUND, /* its activity does not indicate training progress */
};

/* Classify the 'n' processes of one rank.  If no process qualifies as PROCESS_MAIN, the
 * rank's root process becomes it.  'proc' is the mount point of proc.
 */
void family_kinds (const char *proc, const struct rank_process *p, size_t n,
                   enum process_kind *kinds);
