/* SPDX-License-Identifier: Apache-2.0 */
/* The points that a search tries first. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* Is parameter 'i' active, given the values of those that it waits for? */
bool point_active (const struct experiment *e, size_t i, const double *x);

/* Fill search.points from the defaults and searcher.try_first. */
void points_read (struct experiment *e, config_t *cf, struct problems *p);
