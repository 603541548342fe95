/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of checks. */
#ifndef LAUNCHER_NODECHECK_CHECKS_H
#define LAUNCHER_NODECHECK_CHECKS_H

#include "launcher/nodecheck/health.h"

/* Ended by a NULL name: checks of one node, and checks between nodes. */
extern const struct check_row check_table[], check_peer_table[];

#endif
