/* SPDX-License-Identifier: Apache-2.0 */
/* Put the values of settings into a struct, by a table of keys. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"
#include "launcher/config/keys.h"

/* The row of a path, NULL: there is none. */
const struct key *key_find (const struct key *table, const char *path);

/* Where an object has the value of a key. */
void *key_at (const void *object, const struct key *k);

/* Put the value of a setting, or the default, into the struct 'object' that the
 * table is of (that of a KEY_TEXT is a struct experiment); a wrong type or
 * range is a problem.
 */
void key_set (void *object, const struct key *k, const config_setting_t *s, struct problems *p);
void key_default (void *object, const struct key *k);
void key_free (void *object, const struct key *k);

/* Add the problem that 'path' must be 'wanted'; returns -1. */
int key_wrong_type (struct problems *p, const config_setting_t *s, const char *path,
                    const char *wanted);
