/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions of steps, in the language of searcher/space/constraint.h. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/placeholder.h"
#include "launcher/flow/flow.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "searcher/space/constraint.h"

/* Each {name} is a parameter, v0, v1 ..., with one choice, its value. */
struct terms {
    char **names, **values; /* NULL-ended */
    size_t n;
    bool last;     /* the last term is what stood before ... */
    char operator; /* ... this operator: = or !, of two characters */
};

static bool is_number (const char *text)
{
    char *end;

    strtod (text, &end);
    return end > text && !*end;
}

/* Of two values that are no numbers the second is a text: parameters with
 * choices are compared as numbers.
 */
static bool is_text (const struct terms *t, const char *value)
{
    return t->last && t->operator&& t->n> 0 && !strpbrk (value, "'")
           && !(is_number (value) && is_number (t->values[t->n - 1]));
}

static int put_term (struct terms *t, FILE *to, char *value)
{
    int rv = 0;

    if (is_text (t, value)) {
        fprintf (to, "'%s'", value);
        t->last = false;
    } else {
        fprintf (to, "v%zu", t->n);
        rv = strings_addf (&t->names, "v%zu", t->n) | strings_add (&t->values, value);
        t->n++;
        t->last = true;
    }
    t->operator= 0;
    free (value);
    return rv;
}

/* Follow what stands between two terms. */
static void pass (struct terms *t, const char *at)
{
    if (isspace ((unsigned char)*at) || (t->operator&& * at == '='))
        return;
    t->last = t->last && !t->operator&& strchr ("=!", *at) && at[1] == '=';
    t->operator= t->last ? *at : 0;
}

/* The text of the expression, which the caller frees. */
static char *expression (struct terms *t, const char *text, flow_value_f value, void *arg,
                         struct slurmdl_error *err)
{
    char *made = NULL;
    size_t size, n;
    FILE *to = open_memstream (&made, &size);
    char quote = 0;
    int rv = to ? 0 : -1;

    for (const char *at = text; rv == 0 && *at; at += n) {
        char name[256];
        char *v;
        n = placeholder_length (text, at);
        if (n == 0) {
            n = 1;
            if (strchr ("'\"", *at) && (!quote || quote == *at))
                quote = quote ? 0 : *at;
            pass (t, at);
            putc (*at, to);
            continue;
        }
        snprintf (name, sizeof (name), "%.*s", (int)n - 2, at + 1);
        if (quote)
            rv = errorf (err, "{%s} stands in quotes: leave them out", name);
        else
            rv = (v = value (name, arg, err)) ? put_term (t, to, v) : -1;
    }
    if (to && fclose (to) == 0 && rv == 0)
        return made;
    free (made);
    return NULL;
}

static const char *compile (struct constraint *c, const struct terms *t, const char *text,
                            int *column)
{
    const char *(*labels)[2] = calloc (t->n + 1, sizeof (*labels));
    const char *const **list = calloc (t->n + 1, sizeof (*list));
    long *counts = calloc (t->n + 1, sizeof (*counts));
    bool *open = calloc (t->n + 1, sizeof (*open));
    const char *why = "out of memory";

    if (labels && list && counts && open) {
        for (size_t i = 0; i < t->n; i++) {
            labels[i][0] = t->values[i];
            list[i] = labels[i];
            counts[i] = 1;
            open[i] = true;
        }
        why = constraint_compile (c, text,
                                  &(struct constraint_names){ (const char *const *)t->names, list,
                                                              counts, t->n, open, true },
                                  column);
    }
    free (labels);
    free (list);
    free (counts);
    free (open);
    return why;
}

int flow_condition_holds (const char *text, flow_value_f value, void *arg,
                          struct slurmdl_error *err)
{
    struct terms t = { 0 };
    char *made = expression (&t, text, value, arg, err);
    double *x = calloc (t.n + 1, sizeof (*x)); /* the only choice of each */
    struct constraint c = { 0 };
    const char *why;
    int column, rv = -1;

    if (made && x) {
        why = compile (&c, &t, made, &column);
        errno = EINVAL;
        rv = why ? errorf (err, "'when': %s: %s", text, why) : constraint_is_true (&c, x);
    }
    free (x);
    free (made);
    strings_free (t.names);
    strings_free (t.values);
    return rv;
}
