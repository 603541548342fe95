/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment and its trials as JSON.  dl show --json prints it, dl export writes the trials of
 * it, and what the Python package reads is derived from it.
 */
#pragma once

#include <jansson.h>

#include "launcher/sweep/columns.h"

/* A text, null for NULL; bytes that are not UTF-8 become \xNN, so that two names stay two. */
json_t *text_json (const char *bytes);

/* What is known of the experiment beside its trials: name, state, metrics, space, best result, and
 * with repeats its points.
 */
json_t *experiment_json (const struct sweep *s);

/* A trial: a field for each column, the hyperparameters in an object of their own with the types
 * that the trainer gets, its conditions, and how far it has come if it is being trained.  A number
 * that is not finite is null, and so is a hyperparameter that is inactive.
 */
json_t *trial_json (const struct sweep *s, const struct columns *c, long trial);
