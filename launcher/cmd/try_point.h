/* SPDX-License-Identifier: Apache-2.0 */
/* The point of dl try: a random one, or the user's. */
#pragma once

#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/experiment.h"

/* Write the point to 'x': the given one, which is the last of those that are
 * tried first, or a random one.  Returns -1 if no point is allowed.
 */
int try_point (const struct experiment *e, bool given, double *x);

/* The arguments NAME=VALUE as the one point of searcher.try_first, a text for
 * --set that the caller frees; NULL after lines that say what is wrong.
 */
char *try_point_set (char **args, int n);

/* For edit_apply(): leave out what only the file's own searcher knows, as not
 * each takes a point.
 */
void try_any_searcher (config_t *cf, const void *arg);
