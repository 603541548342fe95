/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment file as one list of keys and values. */
#pragma once

#include <jansson.h>

/* { "searcher.max_trials": 16, ... }, which the caller owns; a list is one
 * value.  NULL if the text is no experiment file.
 */
json_t *config_flat (const char *text);

/* Call 'f' for each name whose value is not the same in both objects, in the
 * order of the names; 'first' and 'second' are JSON, "-": it has none, and 'n'
 * is how many came before.  Returns how many there are.
 */
typedef void flat_difference_f (long n, const char *name, const char *first, const char *second,
                                void *arg);
long flat_compare (json_t *a, json_t *b, flat_difference_f *f, void *arg);
