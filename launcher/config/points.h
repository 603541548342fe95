/* SPDX-License-Identifier: Apache-2.0 */
/* The points that a search tries first, and those known from an earlier experiment. */
#pragma once

#include <jansson.h>
#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* Whether parameter 'i' is active at 'x', given the values of the parameters it depends on. */
bool point_active (const struct experiment *e, size_t i, const double *x);

/* Fill in search.points from the defaults and from searcher.try_first. */
void points_read (struct experiment *e, config_t *cf, struct problems *p);

/* ---- points of an earlier experiment ---- */

/* Allocate 'n' known points.  search.nknown counts those that are filled in. */
void known_points_allocate (struct experiment *e, size_t n);
void known_points_free (struct experiment *e);

/* Convert search.known to JSON for the first log entry, and back.  NULL: there are none. */
json_t *known_points_json (const struct experiment *e);
void known_points_read (struct experiment *e, const json_t *known);
