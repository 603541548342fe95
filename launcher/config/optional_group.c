/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the command that are left out where a value is absent. */
#include "launcher/config/optional_group.h"

#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/placeholder.h"
#include "launcher/config/space.h"

static const char blanks[] = " \t\n";

static bool is_conditional (const struct experiment *e, const char *name, size_t len)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        if (strlen (h->path) == len && !memcmp (h->path, name, len))
            return h->dim >= 0 && e->space->params[h->dim].when;
    }
    return false;
}

/* null, or a choice that may be null. */
static bool is_nullable (const struct experiment *e, const char *name, size_t n)
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

static bool is_name (const char *wanted, const char *name, size_t len)
{
    return len == strlen (wanted) && !memcmp (name, wanted, len);
}

/* The placeholder of 'n' characters may stand for nothing. */
static bool may_be_absent (const struct experiment *e, const char *text, size_t n)
{
    return is_conditional (e, text + 1, n - 2) || is_nullable (e, text + 1, n - 2)
           || is_name (RESUME_DIR, text + 1, n - 2);
}

size_t group_length (const struct experiment *e, const char *start, const char *text)
{
    bool optional = false;
    size_t n;

    if (*text != '[' || !text[1] || strchr (" \t\n[", text[1])
        || (text > start && !strchr (blanks, text[-1])))
        return 0;
    for (const char *c = text + 1; *c; c += n ? n : 1) {
        if ((n = placeholder_length (start, c)))
            optional |=
                text[1] == '-' || may_be_absent (e, c, n) || is_name ("trial_dir", c + 1, n - 2);
        else if (*c == ']' && (!c[1] || strchr (" \t\n;|&)<>", c[1])))
            return optional ? (size_t)(c - text) + 1 : 0;
    }
    return 0;
}

/* The words in which a placeholder stands, its option first. */
static void find_words (const char *start, const char *text, const char **from, size_t *len)
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

static void say (const struct experiment *e, const char *name, int n, struct problems *p,
                 const char *before, const char *words, int len)
{
    bool is_folder = is_name (RESUME_DIR, name, (size_t)n);

    problem_at (p, e->entrypoint_origin,
                "'entrypoint': {%.*s} has %s; write it as a group, which is "
                "then left out: %s[%s%s%.*s]%s",
                n, name,
                is_folder ? "no value before the trial's first attempt"
                          : "no value where its 'when' does not hold",
                e->argv ? "\"" : "", before, *before ? " " : "", len, words, e->argv ? "\"" : "");
}

/* {resume_dir} alone is an empty word; with a file it would be another file. */
static bool is_wrong (const struct experiment *e, const char *text, size_t n)
{
    return is_conditional (e, text + 1, n - 2)
           || (is_name (RESUME_DIR, text + 1, n - 2) && text[n] == '/');
}

static void check_text (const struct experiment *e, const char *start, const char *before,
                        struct problems *p)
{
    const char *words;
    size_t len;
    size_t n;

    for (const char *c = start; *c; c += n ? n : 1) {
        if ((n = group_length (e, start, c)))
            continue;
        if (!(n = placeholder_length (start, c)) || !is_wrong (e, c, n))
            continue;
        find_words (start, c, &words, &len);
        say (e, c + 1, (int)n - 2, p, before, words, (int)len);
    }
}

void groups_check (const struct experiment *e, struct problems *p)
{
    if (e->entrypoint)
        check_text (e, e->entrypoint, "", p);
    for (char **a = e->argv; a && *a; a++)
        check_text (e, *a, a > e->argv && a[-1][0] == '-' && **a != '-' ? a[-1] : "", p);
}
