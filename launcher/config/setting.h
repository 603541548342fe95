/* SPDX-License-Identifier: Apache-2.0 */
/* Take values out of settings of libconfig. */
#pragma once

#include <jansson.h>
#include <libconfig.h>
#include <stdbool.h>

#include "launcher/config/diagnostics.h"

/* The value of a number of any type.  Returns -1 if it is none. */
int setting_number (const config_setting_t *s, double *v);

/* It as JSON, which the caller owns. */
json_t *setting_json (const config_setting_t *s);

/* Whether it is a list or an array. */
bool setting_is_list (const config_setting_t *s);

/* Whether it is a list of one group at least, and nothing else. */
bool setting_is_list_of_groups (const config_setting_t *s);

/* Whether the texts of a setting (NULL: there is none) and of all that is in it
 * are UTF-8: what goes into JSON must be.  -1 after a problem for each other.
 */
int setting_check_texts (const config_setting_t *s, struct problems *p);

/* ---- where a setting comes from ---- */

/* Of a setting: the option that origin_set() noted, else its line. */
struct origin origin_of (const config_setting_t *s);

/* Of the key 'path', which need not be there. */
struct origin origin_of_key (const config_t *cf, const char *path);

/* Note that a setting and all that is in it come from the text of an option,
 * which must live as long as the settings do; or from where 'from' does.
 */
void origin_set (config_setting_t *s, const char *option);
void origin_copy (config_setting_t *to, const config_setting_t *from);
