/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of a flow: those of its file, and values that are given. */
#include <stdlib.h>
#include <string.h>

#include "launcher/config/key_values.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/flow/load.h"
#include "runtime/base/nearest_word.h"
#include "runtime/base/utf8.h"

enum { WORDS_MAX = 96 };

void flow_read_parameters (struct flow *f, const config_setting_t *s, struct problems *p)
{
    if (!config_setting_is_group (s)) {
        key_wrong_type (p, s, "parameters", "a group { name = value; }");
        return;
    }
    for (int i = 0; i < config_setting_length (s); i++) {
        const config_setting_t *v = config_setting_get_elem (s, (unsigned)i);
        if (config_setting_is_group (v))
            key_wrong_type (p, v, config_setting_name (v), "a value, or a list of values");
        else if (!flow_is_name (config_setting_name (v))
                 || flow_step_find (f, config_setting_name (v)))
            problem_at (p, origin_of (v),
                        "'%s' is no name of a parameter: letters, digits, '_' "
                        "and '-', and no step's",
                        config_setting_name (v));
        else
            json_object_set_new (f->params, config_setting_name (v), setting_json (v));
    }
}

/* "3" is a number where the default is one; a list is JSON. */
static json_t *value_like (const json_t *old, const char *text)
{
    json_t *v;

    if (json_is_string (old))
        return json_string (text);
    v = json_loads (text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (v
        && (json_typeof (v) == json_typeof (old) || (json_is_number (v) && json_is_number (old))
            || (json_is_boolean (v) && json_is_boolean (old))))
        return v;
    json_decref (v);
    return NULL;
}

static const char *type_of (const json_t *v)
{
    return json_is_array (v)     ? "a list, as [1, 2]"
           : json_is_boolean (v) ? "true or false"
                                 : "a number";
}

void flow_set_parameter (struct flow *f, const char *text, struct problems *p)
{
    size_t n = strcspn (text, "=");
    char *name = strndup (text, n);
    const json_t *old = json_object_get (f->params, name);
    const char *words[WORDS_MAX] = { 0 };
    const char *key, *meant;
    json_t *v = NULL;
    size_t i = 0;

    json_object_foreach (f->params, key, v)
        if (i < WORDS_MAX - 1)
            words[i++] = key;
    meant = nearest_word (name, words);
    if (!text[n] || n == 0)
        problem (p, "'%s' is no NAME=VALUE of a parameter", text);
    else if (!old)
        problem (p, "%s has no parameter '%s'%s%s%s", f->file, name,
                 DID_YOU_MEAN (meant, "'", "'", ""));
    else if (!is_utf8 (text + n + 1) || !(v = value_like (old, text + n + 1)))
        problem (p, "'%s': the value must be %s", text, type_of (old));
    else
        json_object_set_new (f->params, name, v);
    free (name);
}
