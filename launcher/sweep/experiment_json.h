/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment and its trials as JSON.  dl show --json prints it, dl export writes its trials, and
 * the Python package reads what is derived from it.
 */
#pragma once

#include <jansson.h>

#include "launcher/sweep/columns.h"

/* A JSON string, or null for NULL.  Bytes that are not UTF-8 become \xNN, so that different names
 * stay different.
 */
json_t *text_json (const char *bytes);

/* Everything about the experiment but its trials: name, state, metrics, space, best result and,
 * with repeats, its points.
 */
json_t *experiment_json (const struct sweep *s);

/* A trial: a member for each column, its conditions and, during training, its progress.  The
 * hyperparameters are in an object of their own, with the types that the trainer gets.  Inactive
 * hyperparameters and numbers that are not finite are null.
 */
json_t *trial_json (const struct sweep *s, const struct columns *c, long trial);
