/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment file as one list of keys and values. */
#include "launcher/config/flat.h"

#include <libconfig.h>
#include <stdio.h>

#include "launcher/config/reading.h"

static void flatten (json_t *group, const char *prefix, json_t *to)
{
    char path[512];
    const char *name;
    json_t *v;

    json_object_foreach (group, name, v)
    {
        snprintf (path,
                  sizeof (path),
                  "%s%s%s",
                  prefix,
                  name,
                  json_is_object (v) ? "." : "");
        if (json_is_object (v))
            flatten (v, path, to);
        else
            json_object_set (to, path, v);
    }
}

json_t *config_flat (const char *text)
{
    json_t *all = NULL;
    json_t *o = NULL;
    config_t cf;

    config_init (&cf);
    if (config_read_string (&cf, text) == CONFIG_TRUE) {
        all = setting_json (config_root_setting (&cf));
        o = json_object ();
        flatten (all, "", o);
        json_decref (all);
    }
    config_destroy (&cf);
    return o;
}
