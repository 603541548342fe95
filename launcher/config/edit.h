/* SPDX-License-Identifier: Apache-2.0 */
/* Edit a parsed experiment file, and write it without losing digits. */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"

/* The edits to apply. */
struct edit {
    const char *file;                          /* the text; NULL: read it from the path */
    const char *dir;                           /* where the command runs; NULL: the file's folder */
    void (*f) (config_t *cf, const void *arg); /* applied before 'sets'; may be NULL */
    const void *arg;                           /* passed to 'f' */
    char *const *sets;                         /* "KEY=VALUE", NULL-terminated, or NULL */
    const char *point;                         /* the element of 'sets' that dl made from 'words' */
    const char *words;                         /* what the user typed, or NULL.  Without 'point' the
                                                  user typed all of 'sets', but not as --set */
};

/* Apply 'edit' to 'cf' and add any errors to 'p'.  Returns whether there was anything to apply.
 */
bool edit_apply (const struct edit *edit, config_t *cf, struct problems *p);

/* Set 'key' to a copy of 'value'.  Returns NULL if the key is impossible. */
config_setting_t *edit_put (config_t *cf, const char *key, const config_setting_t *value);

/* Add 'v' to the group 'to' under 'name'.  If 'to' is a list, 'name' is NULL. */
void edit_add_json (config_setting_t *to, const char *name, const json_t *v);

/* Write 'cf' as text without losing digits.  The caller frees it. */
char *edit_text (config_t *cf);
