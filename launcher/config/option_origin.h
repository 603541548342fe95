/* SPDX-License-Identifier: Apache-2.0 */
/* Where a setting comes from: a line of the file, or an option --set. */
#pragma once

#include <libconfig.h>

#include "launcher/config/diagnostics.h"

/* Of a setting: the option that origin_set() noted, else its line. */
struct origin origin_of (const config_setting_t *s);

/* Of the key 'path', which need not be there. */
struct origin origin_of_key (const config_t *cf, const char *path);

/* Note that a setting and all that is in it come from the text of an option,
 * which must live as long as the settings do; or from where 'from' does.
 */
void origin_set (config_setting_t *s, const char *option);
void origin_copy (config_setting_t *to, const config_setting_t *from);
