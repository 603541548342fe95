/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment file as a flat list of keys and values. */
#include "launcher/config/flat.h"

#include <libconfig.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/setting.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/strings.h"

void flat_add (json_t *to, const json_t *group, const char *prefix)
{
    char path[512];
    const char *name;
    json_t *v;

    json_object_foreach ((json_t *)group, name, v) {
        snprintf (path, sizeof (path), "%s%s%s", prefix, name, json_is_object (v) ? "." : "");
        if (json_is_object (v))
            flat_add (to, v, path);
        else
            json_object_set (to, path, v);
    }
}

/* Collect the names of both objects, which own them. */
static const char **names_of (json_t *a, json_t *b, size_t *n)
{
    const char **list = xcalloc (json_object_size (a) + json_object_size (b) + 1, sizeof (*list));
    const char *name;
    json_t *v;

    *n = 0;
    json_object_foreach (a, name, v)
        list[(*n)++] = name;
    json_object_foreach (b, name, v)
        if (!json_object_get (a, name))
            list[(*n)++] = name;
    qsort (list, *n, sizeof (*list), strings_compare);
    return list;
}

static char *value_text (const json_t *v)
{
    return v ? json_string_of (v, JSON_ENCODE_ANY) : xstrdup ("-");
}

long flat_compare (json_t *a, json_t *b, flat_difference_f *f, void *arg)
{
    size_t count;
    const char **names = names_of (a, b, &count);
    long n = 0;

    for (size_t i = 0; i < count; i++) {
        char *first = value_text (json_object_get (a, names[i]));
        char *second = value_text (json_object_get (b, names[i]));
        if (strcmp (first, second)) {
            f (n, names[i], first, second, arg);
            n++;
        }
        free (first);
        free (second);
    }
    free (names);
    return n;
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
        flat_add (o, all, "");
        json_decref (all);
    }
    config_destroy (&cf);
    return o;
}
