/* SPDX-License-Identifier: Apache-2.0 */
/* A point of the space as JSON, as variables and in a command line. */
#include "launcher/config/hparams.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/experiment.h"
#include "launcher/config/optional_group.h"
#include "launcher/config/placeholder.h"
#include "launcher/config/space.h"
#include "launcher/sys/json_number.h"

static const char *const builtins[] = { "length",    "trial",    "repeat",      "seed",
                                        "trial_dir", RESUME_DIR, "attempt_dir", NULL };

json_t *hparam_json (const struct experiment *e, const struct hparam *h, const double *x)
{
    if (h->dim < 0)
        return json_incref (h->values);
    if (isnan (x[h->dim]))
        return NULL; /* not active */
    switch (e->space->params[h->dim].type) {
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

    for (size_t i = 0; root && i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        json_t *value = hparam_json (e, h, x);
        const char *last;
        json_t *parent = value ? parent_of (root, h->path, &last) : NULL;
        if (parent)
            json_object_set_new (parent, last, value);
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

char *hparam_text (const json_t *v)
{
    char number[NUMBER_TEXT];

    if (!v)
        return NULL;
    if (json_is_string (v))
        return strdup (json_string_value (v));
    if (json_is_real (v)) {
        number_yaml (number, json_real_value (v));
        return strdup (number);
    }
    return json_string_of (v, JSON_ENCODE_ANY | JSON_COMPACT);
}

char *hparams_text (const json_t *hparams, const char *path)
{
    return hparam_text (hparams_value (hparams, path));
}

void hparams_variable (char *buf, size_t size, const char *path)
{
    snprintf (buf, size, "DL_HP_%s", path);
    for (char *c = buf; *c; c++)
        if (!isalnum ((unsigned char)*c))
            *c = '_';
}

/* ---- {name} ---- */

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

/* A file in {resume_dir}: the rest of its word, as far as that is plain. */
static char *file_behind (const char *text)
{
    size_t n = *text == '/' ? strcspn (text, " \t\n'\"]\\{}$*?[;|&()<>") : 0;

    return n > 1 ? strndup (text + 1, n - 1) : NULL;
}

/* The value of the placeholder of 'len' characters, which the caller frees.
 * Every {name} is known (experiment_check()): one without a value is that of a
 * hyperparameter that is not active, or of a folder that is not there.
 */
static char *value_of (const struct command_values *v, const char *text, size_t len)
{
    char name[256];
    char *value;
    char *file;

    snprintf (name, sizeof (name), "%.*s", (int)len - 2, text + 1);
    if ((value = hparams_text (v->hparams, name)))
        return value;
    if (strcmp (name, RESUME_DIR) || !v->resume_dir)
        return hparams_text (v->builtins, name);
    file = file_behind (text + len);
    value = v->resume_dir (v->arg, file);
    free (file);
    return value;
}

/* Whether the file behind {trial_dir} is there, and not empty. */
static bool has_trial_file (const struct command_values *v, const char *text, size_t len)
{
    const char *dir = json_string_value (json_object_get (v->builtins, "trial_dir"));
    char *file = file_behind (text + len);
    char path[PATH_MAX];
    struct stat st;
    bool has = true;

    if (dir && file)
        has = snprintf (path, sizeof (path), "%s/%s", dir, file) < (int)sizeof (path)
              && stat (path, &st) == 0 && (!S_ISREG (st.st_mode) || st.st_size > 0);
    free (file);
    return has;
}

/* Not null: what has no value has no text in a group either.  A group about
 * nothing but a file in {trial_dir} is about going on from it.
 */
static bool has_value (const struct command_values *v, const char *text, size_t len, bool alone)
{
    char *value = value_of (v, text, len);
    bool has = value;
    char name[256];

    snprintf (name, sizeof (name), "%.*s", (int)len - 2, text + 1);
    has = has && !json_is_null (hparams_value (v->hparams, name));
    if (has && alone && !strcmp (name, "trial_dir"))
        has = has_trial_file (v, text, len);
    free (value);
    return has;
}

static bool has_all (const struct command_values *v, const char *start, const char *text,
                     const char *end)
{
    const char *c;
    int names = 0;
    bool has = true;
    size_t n;

    for (c = text; c < end; c += n ? n : 1)
        names += (n = placeholder_length (start, c)) > 0;
    for (c = text; c < end && has; c += n ? n : 1)
        if ((n = placeholder_length (start, c)))
            has = has_value (v, c, n, names == 1);
    return has;
}

/* A group that is left out leaves nothing, one that stays its inner part. */
static void expand (FILE *f, const struct command_values *v, const char *start, const char *text,
                    const char *end, bool quote)
{
    size_t n;

    while (text < end) {
        if ((n = group_length (v->exp, start, text))) {
            if (has_all (v, start, text, text + n))
                expand (f, v, start, text + 1, text + n - 1, quote);
            text += n;
        } else if ((n = placeholder_length (start, text))) {
            char *value = value_of (v, text, n);
            put_quoted (f, value ? value : "", quote);
            free (value);
            text += n;
        } else
            fputc (*text++, f);
    }
}

static char *expand_part (const struct command_values *v, const char *start, const char *text,
                          size_t len, bool quote)
{
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);

    if (!f)
        return NULL;
    expand (f, v, start, text, text + len, quote);
    fclose (f);
    return out;
}

char *hparams_expand (const char *text, const struct command_values *v, bool quote)
{
    return expand_part (v, text, text, strlen (text), quote);
}

int hparams_arguments (const char *text, const struct command_values *v,
                       int (*put) (void *arg, char *word), void *arg)
{
    size_t n = group_length (v->exp, text, text);
    const char *end = text + n - 1;
    int rv = 0;

    /* "\\[" is a bracket */
    if (*text == '\\' && group_length (v->exp, text + 1, text + 1))
        return put (arg, expand_part (v, text, text + 1, strlen (text + 1), false));
    if (n == 0 || text[n])
        return put (arg, hparams_expand (text, v, false));
    if (!has_all (v, text, text, end))
        return 0;
    for (const char *c = text + 1; c < end && rv == 0;) {
        size_t len = strcspn (c, " \t\n");
        if (c + len > end)
            len = (size_t)(end - c);
        if (len)
            rv = put (arg, expand_part (v, text, c, len, false));
        c += len + 1;
    }
    return rv;
}

static bool is_known (const struct experiment *e, const char *name)
{
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (!strcmp (e->space->hparams[i].path, name))
            return true;
    for (size_t i = 0; builtins[i]; i++)
        if (!strcmp (builtins[i], name))
            return true;
    return false;
}

static bool lacks_one (const struct experiment *e, const char *text, size_t len,
                       const json_t *hparams)
{
    char name[256];

    for (const char *c = text; c < text + len; c++) {
        size_t n = placeholder_length (text, c);
        if (n == 0)
            continue;
        snprintf (name, sizeof (name), "%.*s", (int)n - 2, c + 1);
        for (size_t i = 0; i < e->space->nhparams; i++)
            if (!strcmp (e->space->hparams[i].path, name) && !hparams_value (hparams, name))
                return true;
    }
    return false;
}

char *hparams_drop_groups (const struct experiment *e, const char *text, const json_t *hparams)
{
    const char *start = text;
    char *out = NULL;
    size_t size;
    FILE *f = open_memstream (&out, &size);

    while (f && *text) {
        size_t n = group_length (e, start, text);
        if (n && lacks_one (e, text, n, hparams))
            text += n;
        else
            fputc (*text++, f);
    }
    if (f)
        fclose (f);
    return out;
}

int hparams_unknown (const struct experiment *e, const char *text, char *buf, size_t size)
{
    const char *start = text;

    for (; *text; text++) {
        size_t n = placeholder_length (start, text);
        if (!n)
            continue;
        snprintf (buf, size, "%.*s", (int)n - 2, text + 1);
        if (!is_known (e, buf))
            return 1;
    }
    return 0;
}
