/* SPDX-License-Identifier: Apache-2.0 */
/* Put the values of settings into a struct, by a table of keys. */
#include "launcher/config/key_values.h"

#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/sys/strings.h"

void *key_at (const void *object, const struct key *k)
{
    const char *part = object;

    if (k->part != KEY_WHOLE)
        part = *(char *const *)(part + k->part);
    return (char *)part + k->offset;
}

static const char *type_name (const config_setting_t *s)
{
    switch (config_setting_type (s)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        return "an integer";
    case CONFIG_TYPE_FLOAT:
        return "a floating-point number";
    case CONFIG_TYPE_STRING:
        return "a string";
    case CONFIG_TYPE_BOOL:
        return "a boolean";
    case CONFIG_TYPE_GROUP:
        return "a group";
    default:
        return "a list";
    }
}

int key_wrong_type (struct problems *p, const config_setting_t *s, const char *path,
                    const char *wanted)
{
    problem_about (p, path);
    problem_at (p, origin_of (s), "'%s' is %s, but must be %s", path, type_name (s), wanted);
    return -1;
}

/* Determined's { batches = 100 }: the unit is what the trainer counts. */
static const config_setting_t *plain_length (const struct key *k, const config_setting_t *s)
{
    static const char *const units[] = { "batches", "epochs", "records" };

    if (strcmp (k->path, "searcher.max_length") || !config_setting_is_group (s)
        || config_setting_length (s) != 1)
        return s;
    for (size_t i = 0; i < sizeof (units) / sizeof (*units); i++)
        if (!strcmp (config_setting_name (config_setting_get_elem (s, 0)), units[i]))
            return config_setting_get_elem (s, 0);
    return s;
}

static int set_number (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    double v;

    s = plain_length (k, s);
    if (setting_number (s, &v) < 0
        || (k->type == KEY_INT && config_setting_type (s) == CONFIG_TYPE_FLOAT))
        return key_wrong_type (p, s, k->path, k->type == KEY_INT ? "an integer" : "a number");
    if (!(v >= k->min && v <= k->max)) {
        problem_about (p, k->path);
        problem_at (p, origin_of (s),
                    k->max < 0x1p53 - 1 ? "'%s' is %.15g, but must be from %.15g to %.15g"
                                        : "'%s' is %.15g, but must be at least %.15g",
                    k->path, v, k->min, k->max);
        return -1;
    }
    if (k->type == KEY_INT)
        *(int64_t *)key_at (e, k) = (int64_t)v;
    else
        *(double *)key_at (e, k) = v;
    return 0;
}

static char **string_list (const char *path, const config_setting_t *s, struct problems *p)
{
    int n = setting_is_list (s) ? config_setting_length (s) : 1;
    char **list = calloc ((size_t)n + 1, sizeof (*list));

    for (int i = 0; list && i < n; i++) {
        const config_setting_t *item =
            setting_is_list (s) ? config_setting_get_elem (s, (unsigned)i) : s;
        const char *text = config_setting_get_string (item);
        if (!text) {
            key_wrong_type (p, item, path,
                            setting_is_list (s) ? "a list of strings"
                                                : "a string or a list of strings");
            strings_free (list);
            return NULL;
        }
        list[i] = strdup (text);
    }
    return list;
}

static void set_list (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    char ***list = k->type == KEY_TEXT ? &((struct experiment *)e)->argv : key_at (e, k);

    strings_free (*list);
    *list = string_list (k->path, s, p);
}

static void set_string (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    char **text = key_at (e, k);

    if (!config_setting_get_string (s)) {
        key_wrong_type (p, s, k->path,
                        k->type == KEY_TEXT ? "a string or a list of strings" : "a string");
        return;
    }
    free (*text);
    *text = strdup (config_setting_get_string (s));
}

static void set_bools (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    int n = setting_is_list (s) ? config_setting_length (s) : 1;
    struct bools *list = key_at (e, k);

    list->n = 0;
    for (int i = 0; i < n; i++) {
        const config_setting_t *item =
            setting_is_list (s) ? config_setting_get_elem (s, (unsigned)i) : s;
        if (config_setting_type (item) != CONFIG_TYPE_BOOL) {
            key_wrong_type (p, item, k->path, "true or false, or a list of these");
            return;
        }
        if (list->n < OBJECTIVES_MAX)
            list->value[list->n] = config_setting_get_bool (item);
        list->n++;
    }
}

void key_set (void *e, const struct key *k, const config_setting_t *s, struct problems *p)
{
    switch (k->type) {
    case KEY_INT:
    case KEY_FLOAT:
        set_number (e, k, s, p);
        return;
    case KEY_BOOL:
        if (config_setting_type (s) != CONFIG_TYPE_BOOL)
            key_wrong_type (p, s, k->path, "true or false");
        else
            *(bool *)key_at (e, k) = config_setting_get_bool (s);
        return;
    case KEY_BOOLS:
        set_bools (e, k, s, p);
        return;
    case KEY_GROUPS:
        return;
    case KEY_LIST:
        set_list (e, k, s, p);
        return;
    case KEY_TEXT:
        if (setting_is_list (s)) {
            set_list (e, k, s, p);
            return;
        }
        /* fall through */
    case KEY_STRING:
        set_string (e, k, s, p);
    }
}

void key_default (void *e, const struct key *k)
{
    if (!k->byname || *k->byname == '!')
        return;
    switch (k->type) {
    case KEY_INT:
        *(int64_t *)key_at (e, k) = strtoll (k->byname, NULL, 10);
        break;
    case KEY_FLOAT:
        *(double *)key_at (e, k) = strtod (k->byname, NULL);
        break;
    case KEY_BOOL:
        *(bool *)key_at (e, k) = !strcmp (k->byname, "true");
        break;
    case KEY_BOOLS:
        *(struct bools *)key_at (e, k) = (struct bools){ 1, { !strcmp (k->byname, "true") } };
        break;
    case KEY_STRING:
    case KEY_TEXT:
        *(char **)key_at (e, k) = strdup (k->byname);
        break;
    case KEY_LIST:
    case KEY_GROUPS:
        break;
    }
}

const struct key *key_find (const struct key *table, const char *path)
{
    for (const struct key *k = table; k->path; k++)
        if (!strcmp (k->path, path))
            return k;
    return NULL;
}

void key_free (void *e, const struct key *k)
{
    if (k->type == KEY_STRING || k->type == KEY_TEXT)
        free (*(char **)key_at (e, k));
    else if (k->type == KEY_LIST)
        strings_free (*(char ***)key_at (e, k));
}
