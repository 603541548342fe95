/* SPDX-License-Identifier: Apache-2.0 */
/* Read a JSON object into a struct, as described by a table of fields. */
#include "launcher/config/json_fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/error.h"
#include "runtime/base/nearest_word.h"

enum { WORDS_MAX = 64 };

/* A double cannot represent every integer beyond this. */
static const double integer_max = 0x1p53;

/* "a list", "a number", ... */
static const char *json_what (const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list",  [JSON_STRING] = "a string",
        [JSON_INTEGER] = "a number", [JSON_REAL] = "a number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };

    return v ? names[json_typeof (v)] : "nothing";
}

void hint_text (char *buf, size_t size, const char *word, const char *const *words)
{
    const char *meant = nearest_word (word, words);

    snprintf (buf, size, "%s%s%s", DID_YOU_MEAN (meant, "'", "'", ""));
}

static const struct field *find_field (const struct field *fields, const char *name)
{
    for (const struct field *f = fields; f->name; f++)
        if (!strcmp (f->name, name))
            return f;
    return NULL;
}

static int unknown (const struct field *fields, const char *name, const char *who,
                    struct slurmdl_error *err)
{
    const char *words[WORDS_MAX] = { 0 };
    char hint[80];
    int n = 0;

    for (const struct field *f = fields; f->name && n < WORDS_MAX - 1; f++)
        words[n++] = f->name;
    hint_text (hint, sizeof (hint), name, words);
    errno = EINVAL;
    return errorf (err, "%sunknown key '%.60s'%s", who, name, hint);
}

static bool is_whole (const json_t *v)
{
    double x = json_number_value (v);

    return json_is_integer (v) || (json_is_real (v) && floor (x) == x && fabs (x) <= integer_max);
}

static bool has_type (const struct field *f, const json_t *v)
{
    switch (f->type) {
    case FIELD_NUMBER:
        return json_is_number (v);
    case FIELD_INTEGER:
        return is_whole (v);
    case FIELD_BOOL:
        return json_is_boolean (v);
    case FIELD_TEXT:
        return json_is_string (v);
    case FIELD_LIST:
        return json_is_array (v);
    case FIELD_OBJECT:
        return json_is_object (v);
    case FIELD_ANY:
        break;
    }
    return true;
}

static int wrong_type (const struct field *f, const json_t *v, const char *who,
                       struct slurmdl_error *err)
{
    static const char *const wanted[] = {
        [FIELD_NUMBER] = "a number", [FIELD_INTEGER] = "an integer", [FIELD_BOOL] = "true or false",
        [FIELD_TEXT] = "a string",   [FIELD_LIST] = "a list",        [FIELD_OBJECT] = "an object",
    };
    char number[32];

    snprintf (number, sizeof (number), "%.9g", json_number_value (v));
    errno = EINVAL;
    return errorf (err, "%s'%s' is %s, but must be %s", who, f->name,
                   json_is_number (v) ? number : json_what (v), wanted[f->type]);
}

static int check_range (const struct field *f, const json_t *v, const char *who,
                        struct slurmdl_error *err)
{
    double x = json_number_value (v);

    if (f->type > FIELD_INTEGER || (f->min == 0 && f->max == 0) || (x >= f->min && x <= f->max))
        return 0;
    errno = EINVAL;
    if (isinf (f->max))
        return errorf (err, "%s'%s' is %.9g, but must be %.9g or more", who, f->name, x, f->min);
    return errorf (err, "%s'%s' is %.9g, but must be from %.9g to %.9g", who, f->name, x, f->min,
                   f->max);
}

static void set_field (const struct field *f, json_t *v, void *at)
{
    void *to = (char *)at + f->offset;

    switch (f->type) {
    case FIELD_NUMBER:
        *(double *)to = json_number_value (v);
        break;
    case FIELD_INTEGER:
        *(int64_t *)to =
            json_is_integer (v) ? json_integer_value (v) : (int64_t)json_real_value (v);
        break;
    case FIELD_BOOL:
        *(bool *)to = json_is_true (v);
        break;
    case FIELD_TEXT:
        *(const char **)to = json_string_value (v);
        break;
    case FIELD_LIST:
    case FIELD_OBJECT:
    case FIELD_ANY:
        *(json_t **)to = v;
        break;
    }
}

static int missing (const struct field *fields, const json_t *o, const char *who,
                    struct slurmdl_error *err)
{
    for (const struct field *f = fields; f->name; f++)
        if (f->needed && !json_object_get (o, f->name)) {
            errno = EINVAL;
            return errorf (err, "%s'%s' is missing", who, f->name);
        }
    return 0;
}

int fields_read (const struct field *fields, const json_t *o, const char *who, void *at,
                 struct slurmdl_error *err)
{
    char prefix[80] = "";
    const char *name;
    json_t *v;

    if (who)
        snprintf (prefix, sizeof (prefix), "%.60s: ", who);
    json_object_foreach ((json_t *)o, name, v) {
        const struct field *f = find_field (fields, name);
        if (!f)
            return unknown (fields, name, prefix, err);
        if (!has_type (f, v))
            return wrong_type (f, v, prefix, err);
        if (check_range (f, v, prefix, err) < 0)
            return -1;
        set_field (f, v, at);
    }
    return missing (fields, o, prefix, err);
}
