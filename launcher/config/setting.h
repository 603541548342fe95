/* SPDX-License-Identifier: Apache-2.0 */
/* Read values from libconfig settings. */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"

/* Read a number of any type.  Returns -1 if the setting is not a number. */
int setting_number (const config_setting_t *s, double *v);

/* Convert a setting to JSON, which the caller owns. */
json_t *setting_json (const config_setting_t *s);

/* Whether a setting is a list or an array. */
bool setting_is_list (const config_setting_t *s);

/* Whether a setting is a non-empty list that contains only groups. */
bool setting_is_list_of_groups (const config_setting_t *s);

/* Check that all strings in a setting (may be NULL) and in its children are UTF-8, as JSON
 * requires.  Returns -1, after adding a problem for each string that is not.
 */
int setting_check_texts (const config_setting_t *s, struct problems *p);

/* ---- where a setting comes from ---- */

/* The option that origin_set() recorded for a setting, else its line in the file. */
struct origin origin_of (const config_setting_t *s);

/* The same for the key 'path', which may be absent. */
struct origin origin_of_key (const config_t *cf, const char *path);

/* Record that a setting and its children come from a command-line option, whose text must outlive
 * them; or from wherever 'from' comes.
 */
void origin_set (config_setting_t *s, const char *option);
void origin_copy (config_setting_t *to, const config_setting_t *from);
