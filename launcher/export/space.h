/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a search as JSON. */
#ifndef LAUNCHER_EXPORT_SPACE_H
#define LAUNCHER_EXPORT_SPACE_H

#include <jansson.h>

#include "launcher/config/experiment.h"

/* A list of { name, type, low, high, log, step } for numbers, whose type is
 * "int" or "float" and whose step is 0 where there is none, and of { name,
 * type, choices } for choices.  Constants are not in it.  The caller owns it.
 */
json_t *space_json (const struct experiment *e);

#endif
