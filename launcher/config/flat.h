/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment file as one list of keys and values. */
#ifndef LAUNCHER_CONFIG_FLAT_H
#define LAUNCHER_CONFIG_FLAT_H

#include <jansson.h>

/* { "searcher.max_trials": 16, ... }, which the caller owns; a list is one
 * value.  NULL if the text is no experiment file.
 */
json_t *config_flat (const char *text);

#endif
