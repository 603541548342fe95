/* SPDX-License-Identifier: Apache-2.0 */
/* What experiments have cost: seconds of workers and of GPUs. */
#pragma once

#include "launcher/report/model.h"

/* All in seconds. */
struct report_cost {
    double wall;   /* from the first attempt to the last */
    double busy;   /* of all attempts */
    double wasted; /* of those without a result */
    double alive;  /* of workers, from their first attempt to their last */
    double gpus;   /* of busy GPUs */
    size_t attempts;
};

/* Of one of the report's experiments; with 'sweep' r->nsweeps: of all. */
struct report_cost report_cost_of (const struct report *r, size_t sweep);
