/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes of a rank train, and which only start or watch others. */
#pragma once

#include <stddef.h>

#include "launcher/sys/step_processes.h"

enum process_kind {
    PROCESS_MAIN,       /* a program of the user's */
    PROCESS_HELPER,     /* below one, such as a loader of data */
    PROCESS_LAUNCHER,   /* a shell, torchrun, ...: it waits for others */
    PROCESS_BACKGROUND, /* what it does says nothing of the training */
};

/* Fill 'kinds' for the 'n' processes of one rank.  One of them at least is
 * PROCESS_MAIN: if there is none, its root is.  'proc' is the root of proc.
 */
void family_kinds (const char *proc, const struct rank_process *p, size_t n,
                   enum process_kind *kinds);
