/* SPDX-License-Identifier: Apache-2.0 */
/* Edit an experiment file that was parsed, and write it with all digits. */
#pragma once

#include <jansson.h>
#include <libconfig.h>

#include "launcher/config/diagnostics.h"

/* What to edit. */
struct edit {
    const char *file;                          /* its text, NULL: that of the path */
    const char *dir;                           /* where the command runs, NULL: the file's folder */
    void (*f) (config_t *cf, const void *arg); /* NULL: no change, else ... */
    const void *arg;                           /* ... this one first */
    char *const *sets;                         /* "KEY=VALUE", NULL-ended, or NULL */
    const char *point;                         /* that of 'sets' which stands for ... */
    const char *words;                         /* ... these of the user's, NULL: none does; without
                                                  'point' all are the user's words, and no --set */
};

/* Returns 1 if there was something to do, else 0; mistakes are problems. */
int edit_apply (const struct edit *edit, config_t *cf, struct problems *p);

/* Replace or add the value of 'key' by a copy of 'value'; NULL if the key
 * cannot be.
 */
config_setting_t *edit_put (config_t *cf, const char *key, const config_setting_t *value);

/* Add 'v' to a group under 'name' (in a list: NULL). */
void edit_add_json (config_setting_t *to, const char *name, const json_t *v);

/* All of it as text with all digits; the caller frees it. */
char *edit_text (config_t *cf);
