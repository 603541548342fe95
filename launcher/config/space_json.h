/* SPDX-License-Identifier: Apache-2.0 */
/* The search space of an experiment as JSON. */
#pragma once

#include <jansson.h>

struct experiment;

/* The searched parameters as the first line of dl-search-server(1) has them:
 * an array of objects.  Returns a new reference.
 */
json_t *space_json (const struct experiment *e);
