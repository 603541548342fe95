/* SPDX-License-Identifier: Apache-2.0 */
/* Trained points of an earlier experiment that a search knows from its start.
 */
#pragma once

#include <jansson.h>

struct experiment;

/* Allocate 'n' points in e->known; search.nknown counts those that are filled.
 * Returns -1 if out of memory.
 */
int known_points_allocate (struct experiment *e, size_t n);
void known_points_free (struct experiment *e);

/* search.known for the first log entry, and back.  NULL if there is none. */
json_t *known_points_json (const struct experiment *e);
int known_points_read (struct experiment *e, const json_t *known);
