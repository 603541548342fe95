/* SPDX-License-Identifier: Apache-2.0 */
/* Edit a parsed experiment file, and write it without losing digits. */
#include "launcher/config/edit.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/setting.h"
#include "launcher/config/syntax.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"

/* ---- a tree of settings ---- */

static void copy_scalar (config_setting_t *to, const config_setting_t *from)
{
    switch (config_setting_type (from)) {
    case CONFIG_TYPE_INT:
        config_setting_set_int (to, config_setting_get_int (from));
        break;
    case CONFIG_TYPE_INT64:
        config_setting_set_int64 (to, config_setting_get_int64 (from));
        break;
    case CONFIG_TYPE_FLOAT:
        config_setting_set_float (to, config_setting_get_float (from));
        break;
    case CONFIG_TYPE_BOOL:
        config_setting_set_bool (to, config_setting_get_bool (from));
        break;
    case CONFIG_TYPE_STRING:
        config_setting_set_string (to, config_setting_get_string (from));
    }
}

static config_setting_t *add_copy (config_setting_t *group, const char *name,
                                   const config_setting_t *from)
{
    config_setting_t *to = config_setting_add (group, name, config_setting_type (from));

    if (!to)
        return NULL;
    origin_copy (to, from);
    if (!config_setting_is_aggregate (from)) {
        copy_scalar (to, from);
        return to;
    }
    for (int i = 0; i < config_setting_length (from); i++) {
        config_setting_t *s = config_setting_get_elem (from, (unsigned)i);
        add_copy (to, config_setting_name (s), s);
    }
    return to;
}

void edit_add_json (config_setting_t *to, const char *name, const json_t *v)
{
    static const int types[] = {
        [JSON_OBJECT] = CONFIG_TYPE_GROUP,  [JSON_ARRAY] = CONFIG_TYPE_LIST,
        [JSON_STRING] = CONFIG_TYPE_STRING, [JSON_INTEGER] = CONFIG_TYPE_INT64,
        [JSON_REAL] = CONFIG_TYPE_FLOAT,    [JSON_TRUE] = CONFIG_TYPE_BOOL,
        [JSON_FALSE] = CONFIG_TYPE_BOOL,    [JSON_NULL] = CONFIG_TYPE_NONE,
    };
    int type = types[json_typeof (v)];
    bool is_brief = json_is_integer (v) && json_integer_value (v) <= INT_MAX
                    && json_integer_value (v) >= INT_MIN;
    config_setting_t *s = config_setting_add (to, name, is_brief ? CONFIG_TYPE_INT : type);
    const char *key;
    json_t *item;
    size_t i;

    if (!s)
        return;
    if (is_brief)
        config_setting_set_int (s, (int)json_integer_value (v));
    else if (json_is_integer (v))
        config_setting_set_int64 (s, json_integer_value (v));
    else if (json_is_real (v))
        config_setting_set_float (s, json_real_value (v));
    else if (json_is_boolean (v))
        config_setting_set_bool (s, json_is_true (v));
    else if (json_is_string (v))
        config_setting_set_string (s, json_string_value (v));
    json_array_foreach (v, i, item)
        edit_add_json (s, NULL, item);
    json_object_foreach ((json_t *)v, key, item)
        edit_add_json (s, key, item);
}

/* Find the group that contains the key, or create it for 'value'.  'last' becomes the key's name in
 * the group.
 */
static config_setting_t *group_of (config_t *cf, const char *key, const config_setting_t *value,
                                   const char **last)
{
    config_setting_t *group = config_root_setting (cf);
    const char *dot;
    char name[128];

    for (*last = key; group && (dot = strchr (*last, '.')); *last = dot + 1) {
        config_setting_t *next;
        snprintf (name, sizeof (name), "%.*s", (int)(dot - *last), *last);
        next = config_setting_get_member (group, name);
        if (!next && (next = config_setting_add (group, name, CONFIG_TYPE_GROUP)))
            origin_copy (next, value);
        group = next && config_setting_is_group (next) ? next : NULL;
    }
    return group;
}

config_setting_t *edit_put (config_t *cf, const char *key, const config_setting_t *value)
{
    const char *name;
    config_setting_t *group = group_of (cf, key, value, &name);

    if (!group)
        return NULL;
    if (config_setting_get_member (group, name))
        config_setting_remove (group, name);
    return add_copy (group, name, value);
}

/* ---- --set ---- */

/* Accept only a single value, not the end of a value followed by further settings. */
static int parse_value (config_t *cf, const char *text)
{
    char *line;
    char *why;
    int at;

    if (strchr (text, '\n'))
        return -1;
    line = xasprintf ("value = %s;", text);
    why = syntax_parse (cf, line, &at);
    free (line);
    free (why);
    return !why && config_setting_length (config_root_setting (cf)) == 1 ? 0 : -1;
}

static void set_one (config_t *cf, const char *set, struct problems *p)
{
    const char *option = p->words && !p->point ? "" : "--set ";
    const char *eq = strchr (set, '=');
    char key[256];
    config_t value;
    bool is_value;

    if (!eq || eq == set || eq - set >= (long)sizeof (key)) {
        problem (p, "%s%s: must be KEY=VALUE", option, set);
        return;
    }
    snprintf (key, sizeof (key), "%.*s", (int)(eq - set), set);
    config_init (&value);
    if ((is_value = parse_value (&value, eq + 1) == 0))
        origin_set (config_lookup (&value, "value"), set);
    if (!is_value)
        problem (p, "%s%s: the text after = is not a value (a string has quotes: %s'%s=\"text\"')",
                 option, set, option, key);
    else if (!edit_put (cf, key, config_lookup (&value, "value")))
        problem (p, "%s%s: '%s' is not a valid key", option, set, key);
    config_destroy (&value);
}

bool edit_apply (const struct edit *edit, config_t *cf, struct problems *p)
{
    p->point = edit->point;
    p->words = edit->words;
    if (edit->f)
        edit->f (cf, edit->arg);
    for (char *const *set = edit->sets; set && *set; set++)
        set_one (cf, *set, p);
    return edit->f || edit->sets;
}

/* ---- writing ---- */

static void write_string (FILE *f, const char *text)
{
    putc ('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf (f, "\\%c", *c);
        else if (*c < ' ')
            fprintf (f, "\\x%02x", *c);
        else
            putc (*c, f);
    putc ('"', f);
}

/* Write as few digits as read back as the same number, and a decimal point, because libconfig would
 * otherwise read an integer.
 */
static void write_float (FILE *f, double v)
{
    char text[NUMBER_TEXT];
    size_t mantissa;

    number_digits (text, v);
    mantissa = strcspn (text, "e");
    fprintf (f, "%.*s%s%s", (int)mantissa, text, strchr (text, '.') ? "" : ".0", text + mantissa);
}

static void write_edited_value (FILE *f, const config_setting_t *s, int depth);

static void write_members (FILE *f, const config_setting_t *s, int depth)
{
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *m = config_setting_get_elem (s, (unsigned)i);
        fprintf (f, "%*s%s = ", 4 * depth, "", config_setting_name (m));
        write_edited_value (f, m, depth);
        fputs (";\n", f);
    }
}

static void write_list (FILE *f, const config_setting_t *s, const char *ends, int depth)
{
    putc (ends[0], f);
    for (int i = 0; i < config_setting_length (s); i++) {
        fputs (i ? ", " : " ", f);
        write_edited_value (f, config_setting_get_elem (s, (unsigned)i), depth);
    }
    fprintf (f, " %c", ends[1]);
}

static void write_edited_value (FILE *f, const config_setting_t *s, int depth)
{
    switch (config_setting_type (s)) {
    case CONFIG_TYPE_INT:
        fprintf (f, "%d", config_setting_get_int (s));
        break;
    case CONFIG_TYPE_INT64:
        fprintf (f, "%lldL", config_setting_get_int64 (s));
        break;
    case CONFIG_TYPE_FLOAT:
        write_float (f, config_setting_get_float (s));
        break;
    case CONFIG_TYPE_BOOL:
        fputs (config_setting_get_bool (s) ? "true" : "false", f);
        break;
    case CONFIG_TYPE_STRING:
        write_string (f, config_setting_get_string (s));
        break;
    case CONFIG_TYPE_ARRAY:
        write_list (f, s, "[]", depth);
        break;
    case CONFIG_TYPE_LIST:
        write_list (f, s, "()", depth);
        break;
    case CONFIG_TYPE_GROUP:
        fputs ("{\n", f);
        write_members (f, s, depth + 1);
        fprintf (f, "%*s}", 4 * depth, "");
    }
}

/* Do not use config_write(), which writes only six digits. */
char *edit_text (config_t *cf)
{
    char *text = NULL;
    size_t size;
    FILE *f = xopen_memstream (&text, &size);

    write_members (f, config_root_setting (cf), 0);
    xclose_memstream (f);
    return text;
}
