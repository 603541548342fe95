/* SPDX-License-Identifier: Apache-2.0 */
/* The schedulers: how far trials are trained, and in which order. */
#pragma once

#include "searcher/state/state.h"

extern const struct search_scheduler schedule_single, schedule_full, schedule_asha,
    schedule_adaptive, schedule_halving, schedule_hyperband, schedule_async_hyperband,
    schedule_pasha, schedule_stop, schedule_adaptive_stop, schedule_median, schedule_population,
    schedule_auto;
