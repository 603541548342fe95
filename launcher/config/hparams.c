/* SPDX-License-Identifier: Apache-2.0 */
/* A point of the space as JSON, as variables and in a command line. */
#include "launcher/config/hparams.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const builtins[] = { "length", "trial",       "repeat",
                                        "seed",   "attempt_dir", NULL };

static json_t *
value_json (const struct experiment *e, const struct hparam *h, const double *x)
{
    if (h->dim < 0)
        return json_incref (h->values);
    switch (e->params[h->dim].type) {
    case PARAM_INT:
        return json_integer ((json_int_t)x[h->dim]);
    case PARAM_CATEGORICAL:
        return json_incref (json_array_get (h->values, (size_t)x[h->dim]));
    case PARAM_FLOAT:
    case PARAM_LOG:
        break;
    }
    return json_real (x[h->dim]);
}

/* Walk 'path' down from 'root'; '*last' is its last part. */
static json_t *parent_of (json_t *root, const char *path, const char **last)
{
    char part[256];
    const char *dot;

    while ((dot = strchr (path, '.'))) {
        json_t *next;
        snprintf (part, sizeof (part), "%.*s", (int)(dot - path), path);
        if (!(next = json_object_get (root, part))) {
            next = json_object ();
            json_object_set_new (root, part, next);
        }
        root = next;
        path = dot + 1;
    }
    *last = path;
    return root;
}

json_t *hparams_json (const struct experiment *e, const double *x)
{
    json_t *root = json_object ();

    for (size_t i = 0; root && i < e->nhparams; i++) {
        const struct hparam *h = &e->hparams[i];
        const char *last;
        json_t *parent;
        if (h->dim >= 0 && isnan (x[h->dim]))
            continue; /* not active */
        parent = parent_of (root, h->path, &last);
        json_object_set_new (parent, last, value_json (e, h, x));
    }
    return root;
}

const json_t *hparams_value (const json_t *root, const char *path)
{
    char part[256];
    const char *dot;

    while (root && (dot = strchr (path, '.'))) {
        snprintf (part, sizeof (part), "%.*s", (int)(dot - path), path);
        root = json_object_get (root, part);
        path = dot + 1;
    }
    return json_object_get (root, path);
}

char *hparams_text (const json_t *hparams, const char *path)
{
    const json_t *v = hparams_value (hparams, path);
    char number[32];

    if (!v)
        return NULL;
    if (json_is_string (v))
        return strdup (json_string_value (v));
    if (json_is_real (v)) {
        /* the shortest text that reads back as the same number */
        for (int digits = 6; digits <= 17; digits++) {
            snprintf (
                number, sizeof (number), "%.*g", digits, json_real_value (v));
            if (strtod (number, NULL) == json_real_value (v))
                break;
        }
        return strdup (number);
    }
    return json_dumps (v, JSON_ENCODE_ANY | JSON_COMPACT);
}

void hparams_variable (char *buf, size_t size, const char *path)
{
    snprintf (buf, size, "DL_HP_%s", path);
    for (char *c = buf; *c; c++)
        if (!isalnum ((unsigned char)*c))
            *c = '_';
}

/* ---- {name} ---- */

/* Length of the "{name}" that 'text' begins with, 0 if it does not.  Neither
 * ${VARIABLE} nor awk's { print } is one.
 */
static size_t placeholder (const char *start, const char *text)
{
    size_t n = 1;

    if (*text != '{' || (text > start && text[-1] == '$')
        || !(isalpha ((unsigned char)text[1]) || text[1] == '_'))
        return 0;
    while (isalnum ((unsigned char)text[n]) || strchr ("_.-", text[n])) {
        if (!text[n])
            return 0;
        n++;
    }
    return text[n] == '}' ? n + 1 : 0;
}

static void put_quoted (FILE *f, const char *value, bool quote)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789+-._,/:=@%";

    if (!quote || (*value && !value[strspn (value, plain)])) {
        fputs (value, f);
        return;
    }
    fputc ('\'', f);
    for (; *value; value++)
        if (*value == '\'')
            fputs ("'\\''", f);
        else
            fputc (*value, f);
    fputc ('\'', f);
}

/* Every {name} is known (experiment_check()): one without a value is that of
 * a hyperparameter that is not active.
 */
static void put_value (FILE *f,
                       const char *start,
                       int len,
                       const json_t *hparams,
                       const json_t *more,
                       bool quote)
{
    char name[256];
    char *value;

    snprintf (name, sizeof (name), "%.*s", len, start);
    if (!(value = hparams_text (hparams, name)))
        value = hparams_text (more, name);
    put_quoted (f, value ? value : "", quote);
    free (value);
}

char *hparams_expand (const char *text,
                      const json_t *hparams,
                      const json_t *more,
                      bool quote)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);
    const char *start = text;

    while (f && *text) {
        size_t n = placeholder (start, text);
        if (n) {
            put_value (f, text + 1, (int)n - 2, hparams, more, quote);
            text += n;
        } else
            fputc (*text++, f);
    }
    if (f)
        fclose (f);
    return out;
}

static bool is_known (const struct experiment *e, const char *name)
{
    for (size_t i = 0; i < e->nhparams; i++)
        if (!strcmp (e->hparams[i].path, name))
            return true;
    for (size_t i = 0; builtins[i]; i++)
        if (!strcmp (builtins[i], name))
            return true;
    return false;
}

int hparams_unknown (const struct experiment *e,
                     const char *text,
                     char *buf,
                     size_t size)
{
    const char *start = text;

    for (; *text; text++) {
        size_t n = placeholder (start, text);
        if (!n)
            continue;
        snprintf (buf, size, "%.*s", (int)n - 2, text + 1);
        if (!is_known (e, buf))
            return 1;
    }
    return 0;
}
