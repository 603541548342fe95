/* SPDX-License-Identifier: Apache-2.0 */
/* The timeouts of an experiment's workers. */
#pragma once

#include <stdint.h>

struct worker_settings {
    int64_t lease;     /* seconds without a heartbeat after which a worker counts as dead */
    int64_t heartbeat; /* seconds between two heartbeats */
    int64_t grace;     /* seconds that a trainer has to stop */
    int64_t hang;      /* seconds without progress of any rank that count as a hang;
                          0: never, -1: learned */
};
