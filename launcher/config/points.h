/* SPDX-License-Identifier: Apache-2.0 */
/* The points that a search tries first. */
#pragma once

#include <jansson.h>
#include <libconfig.h>

#include "launcher/config/diagnostics.h"

struct experiment;

/* Is parameter 'i' active, given the values of those that it waits for? */
bool point_active (const struct experiment *e, size_t i, const double *x);

/* Fill search.points from the defaults and searcher.try_first. */
void points_read (struct experiment *e, config_t *cf, struct problems *p);

/* ---- points of an earlier experiment ---- */

/* Allocate 'n' points in e->known; search.nknown counts those that are filled.
 */
void known_points_allocate (struct experiment *e, size_t n);
void known_points_free (struct experiment *e);

/* search.known for the first log entry, and back.  NULL if there is none. */
json_t *known_points_json (const struct experiment *e);
void known_points_read (struct experiment *e, const json_t *known);
