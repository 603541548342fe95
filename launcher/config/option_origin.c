/* SPDX-License-Identifier: Apache-2.0 */
/* Where a setting comes from: a line of the file, or an option --set. */
#include "launcher/config/option_origin.h"

/* libconfig keeps a pointer of ours with each setting: the option's text. */

struct origin origin_of (const config_setting_t *s)
{
    return (struct origin){ .line = config_setting_source_line (s),
                            .option = config_setting_get_hook (s) };
}

struct origin origin_of_key (const config_t *cf, const char *path)
{
    const config_setting_t *s = config_lookup (cf, path);

    return s ? origin_of (s) : NO_ORIGIN;
}

void origin_set (config_setting_t *s, const char *option)
{
    config_setting_set_hook (s, (char *)option);
    if (config_setting_is_aggregate (s))
        for (int i = 0; i < config_setting_length (s); i++)
            origin_set (config_setting_get_elem (s, (unsigned)i), option);
}

void origin_copy (config_setting_t *to, const config_setting_t *from)
{
    to->line = from->line;
    config_setting_set_hook (to, config_setting_get_hook (from));
}
