/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin starts and waits for: rows of dl, and all of dl-step. */
#ifndef LAUNCHER_STEP_COMMANDS_H
#define LAUNCHER_STEP_COMMANDS_H

#include "launcher/cmd/options.h"
#include "launcher/debug/watch.h"
#include "launcher/nodecheck/command.h"

/* clang-format off */
#define STEP_COMMANDS \
    { CMD_HIDDEN, "gather", "LEVEL WHAT", "", \
      NULL, 2, 2, cmd_gather }, \
    { CMD_HIDDEN, "check-rank", "LEVEL WHAT", "", \
      NULL, 2, 2, cmd_check_rank }, \
    { CMD_HIDDEN, "watch-ranks", "DIR SECONDS PID [kill]", "", \
      NULL, 3, 4, cmd_watch_ranks },
/* clang-format on */

#endif
