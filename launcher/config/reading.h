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
