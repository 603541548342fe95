/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment file as a flat list of keys and values. */
#pragma once

#include <jansson.h>

/* Add the values of nested groups to 'to', with names such as "optimizer.lr".  'prefix' comes
 * before each name.
 */
void flat_add (json_t *to, const json_t *group, const char *prefix);

/* Flatten an experiment file to { "searcher.max_trials": 16, ... }, which the caller owns.  A list
 * is a single value.  Returns NULL if the text is not an experiment file.
 */
json_t *config_flat (const char *text);

/* Call 'f' for each name whose value differs between the two objects, in order of the names.
 * 'first' and 'second' are the values as JSON, or "-" if the object lacks the name; 'n' counts the
 * calls from 0.  Returns the number of differences.
 */
typedef void flat_difference_f (long n, const char *name, const char *first, const char *second,
                                void *arg);
long flat_compare (json_t *a, json_t *b, flat_difference_f *f, void *arg);
