/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of checks. */
#pragma once

#include "launcher/nodecheck/health.h"

/* Ended by a NULL name: checks of one node, and checks between nodes. */
extern const struct check_row check_table[], check_peer_table[];
