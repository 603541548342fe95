/* SPDX-License-Identifier: Apache-2.0 */
/* The times of an experiment's workers. */
#pragma once

#include <stdint.h>

struct worker_settings {
    int64_t lease;     /* s without a sign of life until a worker is dead */
    int64_t heartbeat; /* s between two signs of life */
    int64_t grace;     /* s that a trainer has to stop */
    int64_t hang;      /* s without progress of any rank; 0: never, -1: learned */
};
