/* SPDX-License-Identifier: Apache-2.0 */
/* Read values from libconfig settings. */
#include "launcher/config/setting.h"

#include <string.h>

#include "runtime/base/utf8.h"

/* ---- where a setting comes from ---- */

/* libconfig stores a pointer of ours with each setting: the text of the option. */

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

int setting_number (const config_setting_t *s, double *v)
{
    switch (config_setting_type (s)) {
    case CONFIG_TYPE_INT:
        *v = config_setting_get_int (s);
        return 0;
    case CONFIG_TYPE_INT64:
        *v = (double)config_setting_get_int64 (s);
        return 0;
    case CONFIG_TYPE_FLOAT:
        *v = config_setting_get_float (s);
        return 0;
    default:
        return -1;
    }
}

/* libconfig has no null, so { type = "null"; } represents it. */
static bool is_null_setting (const config_setting_t *s)
{
    const char *type;

    return config_setting_is_group (s) && config_setting_length (s) == 1
           && config_setting_lookup_string (s, "type", &type) && !strcmp (type, "null");
}

json_t *setting_json (const config_setting_t *s)
{
    json_t *v;

    if (is_null_setting (s))
        return json_null ();
    switch (config_setting_type (s)) {
    case CONFIG_TYPE_INT:
        return json_integer (config_setting_get_int (s));
    case CONFIG_TYPE_INT64:
        return json_integer (config_setting_get_int64 (s));
    case CONFIG_TYPE_FLOAT:
        return json_real (config_setting_get_float (s));
    case CONFIG_TYPE_BOOL:
        return json_boolean (config_setting_get_bool (s));
    case CONFIG_TYPE_STRING:
        return json_string (config_setting_get_string (s));
    case CONFIG_TYPE_GROUP:
        v = json_object ();
        break;
    default:
        v = json_array ();
        break;
    }
    for (int i = 0; v && i < config_setting_length (s); i++) {
        const config_setting_t *c = config_setting_get_elem (s, (unsigned)i);
        if (config_setting_is_group (s))
            json_object_set_new (v, config_setting_name (c), setting_json (c));
        else
            json_array_append_new (v, setting_json (c));
    }
    return v;
}

bool setting_is_list (const config_setting_t *s)
{
    int t = config_setting_type (s);

    return t == CONFIG_TYPE_LIST || t == CONFIG_TYPE_ARRAY;
}

bool setting_is_list_of_groups (const config_setting_t *s)
{
    if (!config_setting_is_list (s) || config_setting_length (s) == 0)
        return false;
    for (int i = 0; i < config_setting_length (s); i++)
        if (!config_setting_is_group (config_setting_get_elem (s, (unsigned)i)))
            return false;
    return true;
}

int setting_check_texts (const config_setting_t *s, struct problems *p)
{
    const char *text = s ? config_setting_get_string (s) : NULL;
    int before = p->count;

    if (text && !is_utf8 (text))
        problem_at (p, origin_of (s), "this text is not UTF-8: save the file as UTF-8");
    if (s && config_setting_is_aggregate (s))
        for (int i = 0; i < config_setting_length (s); i++)
            setting_check_texts (config_setting_get_elem (s, (unsigned)i), p);
    return p->count > before ? -1 : 0;
}
