/* SPDX-License-Identifier: Apache-2.0 */
/* A point of the search space as JSON, as environment variables and in a command line. */
#include "launcher/config/hparams.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/config/experiment.h"
#include "launcher/config/setting.h"
#include "launcher/config/space.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/json_number.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

/* ---- placeholders ---- */

size_t placeholder_length (const char *start, const char *text)
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

/* ---- optional groups ---- */

static const char blanks[] = " \t\n";

static bool hparam_is_conditional (const struct experiment *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        if (strlen (h->path) == len && !memcmp (h->path, name, len))
            return h->dim >= 0 && e->space->params[h->dim].when;
    }
    return false;
}

/* Whether the hyperparameter is null or has a choice that is null. */
static bool hparam_is_nullable (const struct experiment *e, const char *name, size_t n)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];

        if (strlen (h->path) != n || memcmp (h->path, name, n))
            continue;
        if (h->dim < 0)
            return json_is_null (h->values);
        for (size_t at = 0; at < json_array_size (h->values); at++)
            if (json_is_null (json_array_get (h->values, at)))
                return true;
    }
    return false;
}

static bool is_hparam_name (const char *wanted, const char *name, size_t len)
{
    return len == strlen (wanted) && !memcmp (name, wanted, len);
}

/* Whether the placeholder of 'n' characters may have no value. */
static bool may_be_absent (const struct experiment *e, const char *text, size_t n)
{
    return hparam_is_conditional (e, text + 1, n - 2) || hparam_is_nullable (e, text + 1, n - 2)
           || is_hparam_name (RESUME_DIR, text + 1, n - 2);
}

/* Length of an optional group such as "[--momentum {momentum}]" at the beginning of 'text', or 0 if
 * there is none.  'start' is the beginning of the whole text.  To tell groups from the shell's
 * tests, patterns and lists, a group must begin and end at word boundaries, its '[' must not be
 * followed by a blank or another bracket, and it must contain a {name} that may have no value, or
 * begin with '-' and contain any {name}.
 */
static size_t group_length (const struct experiment *e, const char *start, const char *text)
{
    bool optional = false;
    size_t n;

    if (*text != '[' || !text[1] || strchr (" \t\n[", text[1])
        || (text > start && !strchr (blanks, text[-1])))
        return 0;
    for (const char *c = text + 1; *c; c += n ? n : 1) {
        if ((n = placeholder_length (start, c)))
            optional |= text[1] == '-' || may_be_absent (e, c, n)
                        || is_hparam_name ("trial_dir", c + 1, n - 2);
        else if (*c == ']' && (!c[1] || strchr (" \t\n;|&)<>", c[1])))
            return optional ? (size_t)(c - text) + 1 : 0;
    }
    return 0;
}

/* Find the words that contain a placeholder, beginning with its option. */
static void find_group_bounds (const char *start, const char *text, const char **from, size_t *len)
{
    const char *word = text;
    const char *option;

    while (word > start && !strchr (blanks, word[-1]))
        word--;
    *len = strcspn (text, blanks) + (size_t)(text - word);
    *from = word;
    if (*word == '-')
        return;
    for (option = word; option > start && strchr (blanks, option[-1]);)
        option--;
    while (option > start && !strchr (blanks, option[-1]))
        option--;
    if (*option == '-') {
        *len += (size_t)(word - option);
        *from = option;
    }
}

static void report_absent_name (const struct experiment *e, const char *name, int n,
                                struct problems *p, const char *before, const char *words, int len)
{
    bool is_folder = is_hparam_name (RESUME_DIR, name, (size_t)n);

    problem_at (
        p, e->entrypoint_origin,
        "'entrypoint': {%.*s} has %s; write it as a group, which is then omitted: %s[%s%s%.*s]%s",
        n, name,
        is_folder ? "no value before the trial's first attempt" : "no value if its 'when' is false",
        e->argv ? "\"" : "", before, *before ? " " : "", len, words, e->argv ? "\"" : "");
}

/* Whether the placeholder must be in a group.  An empty {resume_dir} by itself is only an empty
 * word, but an empty one in {resume_dir}/FILE would lead to another file.
 */
static bool stands_alone (const struct experiment *e, const char *text, size_t n)
{
    return hparam_is_conditional (e, text + 1, n - 2)
           || (is_hparam_name (RESUME_DIR, text + 1, n - 2) && text[n] == '/');
}

static void check_groups_of_text (const struct experiment *e, const char *start, const char *before,
                                  struct problems *p)
{
    const char *words;
    size_t len;
    size_t n;

    for (const char *c = start; *c; c += n ? n : 1) {
        if ((n = group_length (e, start, c)))
            continue;
        if (!(n = placeholder_length (start, c)) || !stands_alone (e, c, n))
            continue;
        find_group_bounds (start, c, &words, &len);
        report_absent_name (e, c + 1, (int)n - 2, p, before, words, (int)len);
    }
}

void groups_check (const struct experiment *e, struct problems *p)
{
    if (e->entrypoint)
        check_groups_of_text (e, e->entrypoint, "", p);
    for (char **a = e->argv; a && *a; a++)
        check_groups_of_text (e, *a, a > e->argv && a[-1][0] == '-' && **a != '-' ? a[-1] : "", p);
}

/* ---- values as users write them ---- */

char *json_text (const json_t *v)
{
    json_t *one = json_pack ("{s:O}", "v", v);
    char *text = one ? hparams_text (one, "v") : NULL;

    json_decref (one);
    return text;
}

struct hparam *hparam_find (const struct experiment *e, const char *path)
{
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (!strcmp (e->space->hparams[i].path, path))
            return &e->space->hparams[i];
    return NULL;
}

/* Find the most similar path, or one with the same last part. */
static const char *path_meant (const struct experiment *e, const char *path)
{
    const char **words = xcalloc (e->space->nhparams + 1, sizeof (*words));
    const char *last = strrchr (path, '.') ? strrchr (path, '.') + 1 : path;
    const char *meant = NULL;

    for (size_t i = 0; i < e->space->nhparams; i++) {
        const char *dot = strrchr (e->space->hparams[i].path, '.');
        words[i] = e->space->hparams[i].path;
        if (dot && !strcmp (dot + 1, last))
            meant = words[i];
    }
    if (!meant)
        meant = nearest_word (path, words);
    free (words);
    return meant;
}

void hparam_unknown (const struct experiment *e, const config_setting_t *s, const char *where,
                     const char *path, struct problems *p)
{
    const char *meant = path_meant (e, path);

    problem_at (p, origin_of (s), "%s: '%s' is not a hyperparameter%s%s%s", where, path,
                DID_YOU_MEAN (meant, "'", "'", ""));
}

/* Ask the searcher whether this parameter alone may have the value.  Bounds are not sharp for
 * PARAM_LOG, because its values are results of pow().
 */
static bool param_holds (const struct param *d, double x)
{
    struct param alone = *d;
    struct search_config config = {
        .name = "random", .max_trials = 1, .max_length = 1, .points = &x, .npoints = 1
    };

    alone.when = NULL;
    if (d->type == PARAM_LOG
        && !(x >= pow (d->base, d->min) * (1 - 1e-9) && x <= pow (d->base, d->max) * (1 + 1e-9)))
        return false;
    return !searcher_check (&config, &alone, 1, NULL);
}

int json_value (const struct experiment *e, const struct hparam *h, const json_t *v, double *x)
{
    const struct param *d = &e->space->params[h->dim];
    char *text;

    if (d->type != PARAM_CATEGORICAL) {
        *x = json_number_value (v);
        return json_is_number (v) && param_holds (d, *x) ? 0 : -1;
    }
    if (!(text = json_text (v)))
        return -1;
    for (*x = 0; *x < d->choices; ++*x)
        if (!strcmp (h->labels[(long)*x], text))
            break;
    free (text);
    return *x < d->choices ? 0 : -1;
}

/* Describe the valid values: "; it has sgd, adam", " (from 0.001 to 1)". */
static void describe_values (const struct experiment *e, const struct hparam *h, const char *text,
                             char *buf, size_t size)
{
    const struct param *d = &e->space->params[h->dim];
    const char *meant;
    bool is_log = d->type == PARAM_LOG;

    if (d->type != PARAM_CATEGORICAL) {
        size_t n = (size_t)snprintf (buf, size, ": it has numbers from %.9g to %.9g",
                                     is_log ? pow (d->base, d->min) : d->min,
                                     is_log ? pow (d->base, d->max) : d->max);
        if (d->step > 0 && n < size)
            snprintf (buf + n, size - n, " in steps of %.9g", d->step);
        return;
    }
    meant = nearest_word (text, (const char *const *)h->labels);
    snprintf (buf, size, meant ? "; did you mean \"%s\"?" : ": its first is \"%s\"",
              meant          ? meant
              : h->labels[0] ? h->labels[0]
                             : "");
}

int setting_value (const struct experiment *e, const struct hparam *h, const config_setting_t *s,
                   const char *where, double *x, struct problems *p)
{
    json_t *v = setting_json (s);
    char hint[160];
    char *text;

    if (json_value (e, h, v, x) == 0) {
        json_decref (v);
        return 0;
    }
    text = json_text (v);
    describe_values (e, h, text ? text : "", hint, sizeof (hint));
    free (text);
    text = json_is_string (v) ? json_dumps (v, JSON_ENCODE_ANY) : json_text (v);
    json_decref (v);
    problem_at (p, origin_of (s), "%s: %s is not a value of '%s'%s", where, text ? text : "this",
                h->path, hint);
    free (text);
    return -1;
}

static const char *const hparam_builtins[] = { "length",    "trial",    "repeat",      "seed",
                                               "trial_dir", RESUME_DIR, "attempt_dir", NULL };

json_t *hparam_json (const struct experiment *e, const struct hparam *h, const double *x)
{
    if (h->dim < 0)
        return json_incref (h->values);
    if (isnan (x[h->dim]))
        return NULL; /* inactive */
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

/* Follow 'path' from 'root' to the object that contains its last part, '*last'. */
static json_t *parent_object (json_t *root, const char *path, const char **last)
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
        json_t *parent = value ? parent_object (root, h->path, &last) : NULL;
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
        return xstrdup (json_string_value (v));
    if (json_is_real (v)) {
        number_yaml (number, json_real_value (v));
        return xstrdup (number);
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

/* The file after {resume_dir}: the rest of the word up to the first special character. */
static char *file_after_placeholder (const char *text)
{
    size_t n = *text == '/' ? strcspn (text, " \t\n'\"]\\{}$*?[;|&()<>") : 0;

    return n > 1 ? xstrndup (text + 1, n - 1) : NULL;
}

/* The value of the placeholder of 'len' characters, which the caller frees.  experiment_check() has
 * rejected unknown names, so one without a value is an inactive hyperparameter or a missing folder.
 */
static char *placeholder_value (const struct command_values *v, const char *text, size_t len)
{
    char name[256];
    char *value;
    char *file;

    snprintf (name, sizeof (name), "%.*s", (int)len - 2, text + 1);
    if ((value = hparams_text (v->hparams, name)))
        return value;
    if (strcmp (name, RESUME_DIR) || !v->resume_dir)
        return hparams_text (v->builtins, name);
    file = file_after_placeholder (text + len);
    value = v->resume_dir (v->arg, file);
    free (file);
    return value;
}

/* Whether the file after {trial_dir} exists and is not empty. */
static bool has_trial_file (const struct command_values *v, const char *text, size_t len)
{
    const char *dir = json_string_value (json_object_get (v->builtins, "trial_dir"));
    char *file = file_after_placeholder (text + len);
    char path[PATH_MAX];
    struct stat st;
    bool has = true;

    if (dir && file)
        has = snprintf (path, sizeof (path), "%s/%s", dir, file) < (int)sizeof (path)
              && stat (path, &st) == 0 && (!S_ISREG (st.st_mode) || st.st_size > 0);
    free (file);
    return has;
}

/* In a group, null counts as no value.  A group that only names a file in {trial_dir} is meant for
 * resuming from it, so it has a value only if that file exists.
 */
static bool placeholder_has_value (const struct command_values *v, const char *text, size_t len,
                                   bool alone)
{
    char *value = placeholder_value (v, text, len);
    bool has = value;
    char name[256];

    snprintf (name, sizeof (name), "%.*s", (int)len - 2, text + 1);
    has = has && !json_is_null (hparams_value (v->hparams, name));
    if (has && alone && !strcmp (name, "trial_dir"))
        has = has_trial_file (v, text, len);
    free (value);
    return has;
}

static bool group_has_values (const struct command_values *v, const char *start, const char *text,
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
            has = placeholder_has_value (v, c, n, names == 1);
    return has;
}

/* Replace an omitted group with nothing, and any other group with the text inside its brackets. */
static void expand_text (FILE *f, const struct command_values *v, const char *start,
                         const char *text, const char *end, bool quote)
{
    size_t n;

    while (text < end) {
        if ((n = group_length (v->exp, start, text))) {
            if (group_has_values (v, start, text, text + n))
                expand_text (f, v, start, text + 1, text + n - 1, quote);
            text += n;
        } else if ((n = placeholder_length (start, text))) {
            char *value = placeholder_value (v, text, n);
            if (quote)
                shell_put (f, value ? value : "");
            else if (value)
                fputs (value, f);
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
    FILE *f = xopen_memstream (&out, &size);

    expand_text (f, v, start, text, text + len, quote);
    xclose_memstream (f);
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

    /* "\\[" is a literal bracket */
    if (*text == '\\' && group_length (v->exp, text + 1, text + 1))
        return put (arg, expand_part (v, text, text + 1, strlen (text + 1), false));
    if (n == 0 || text[n])
        return put (arg, hparams_expand (text, v, false));
    if (!group_has_values (v, text, text, end))
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

static bool is_placeholder (const struct experiment *e, const char *name)
{
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (!strcmp (e->space->hparams[i].path, name))
            return true;
    for (size_t i = 0; hparam_builtins[i]; i++)
        if (!strcmp (hparam_builtins[i], name))
            return true;
    return false;
}

static bool group_lacks_value (const struct experiment *e, const char *text, size_t len,
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
    FILE *f = xopen_memstream (&out, &size);

    while (*text) {
        size_t n = group_length (e, start, text);
        if (n && group_lacks_value (e, text, n, hparams))
            text += n;
        else
            fputc (*text++, f);
    }
    xclose_memstream (f);
    return out;
}

bool hparams_unknown (const struct experiment *e, const char *text, char *buf, size_t size)
{
    const char *start = text;

    for (; *text; text++) {
        size_t n = placeholder_length (start, text);
        if (!n)
            continue;
        snprintf (buf, size, "%.*s", (int)n - 2, text + 1);
        if (!is_placeholder (e, buf))
            return true;
    }
    return false;
}

bool experiment_has_placeholder (const struct experiment *e, const char *name)
{
    char placeholder[256];
    char **a = e->argv;

    snprintf (placeholder, sizeof (placeholder), "{%s}", name);
    while (a && *a && !strstr (*a, placeholder))
        a++;
    return (a && *a) || (e->entrypoint && strstr (e->entrypoint, placeholder));
}
