/* SPDX-License-Identifier: Apache-2.0 */
/* Which checkpoints of an experiment dl keeps (launcher/worker/worker.h). */
#pragma once

#include <stdint.h>

struct checkpoint_policy {
    int64_t experiment_best;
    int64_t trial_best;
    int64_t trial_latest;
    char **files; /* patterns, or NULL */
};
