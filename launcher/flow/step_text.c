/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of a flow's steps: the {names} in them, and conditions. */
#include "launcher/config/experiment.h"
#include "launcher/flow/file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/hparams.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"
#include "searcher/space/constraint.h"

struct flow_step *flow_step_find (const struct flow *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp (f->steps[i].name, name))
            return &f->steps[i];
    return NULL;
}

size_t flow_step_number (const struct flow *f, const struct flow_step *s)
{
    return (size_t)(s - f->steps);
}

static int names_of_text (const char *text, const char *where, flow_name_f f, void *arg)
{
    char name[256];
    int rv = 0;
    size_t n;

    for (const char *at = text; rv == 0 && at && *at; at += n ? n : 1)
        if ((n = placeholder_length (text, at))) {
            snprintf (name, sizeof (name), "%.*s", (int)n - 2, at + 1);
            rv = f (name, where, arg);
        }
    return rv;
}

static int names_of_list (char *const *list, const char *where, flow_name_f f, void *arg)
{
    int rv = 0;

    for (; rv == 0 && list && *list; list++)
        rv = names_of_text (*list, where, f, arg);
    return rv;
}

int flow_each_name (const struct flow_step *s, flow_name_f f, void *arg)
{
    int rv = names_of_text (s->exp->entrypoint, "entrypoint", f, arg);

    for (size_t i = 0; rv == 0 && i < s->noutputs; i++)
        rv = names_of_text (s->outputs[i].path, "outputs", f, arg);
    return rv || (rv = names_of_list (s->exp->argv, "entrypoint", f, arg))
                   || (rv = names_of_text (s->when, "when", f, arg))
                   || (rv = names_of_text (s->sweep, "sweep", f, arg))
                   || (rv = names_of_list (s->set, "set", f, arg))
                   || (rv = names_of_list (s->inputs, "inputs", f, arg))
                   || (rv = names_of_list (s->exp->variables, "environment", f, arg))
               ? rv
               : 0;
}

bool flow_step_has (const struct flow_step *s, const char *value)
{
    static const char *const of_sweep[] = { "checkpoint", "experiment", "trial", "metric", NULL };

    for (size_t i = 0; i < s->noutputs; i++)
        if (!strcmp (s->outputs[i].name, value))
            return true;
    if (strings_contain ((const char *const *)s->values, value))
        return true;
    /* without 'values', dl could not read its file and accepts any name */
    return s->sweep && (!s->values || strings_contain (of_sweep, value));
}

bool flow_has_name (const char *text)
{
    for (const char *at = text; at && *at; at++)
        if (placeholder_length (text, at))
            return true;
    return false;
}

char *flow_with_params (const struct flow *f, const char *text)
{
    char *out = NULL;
    size_t size;
    FILE *o = xopen_memstream (&out, &size);
    char name[256];

    for (const char *at = text; *at;) {
        size_t n = placeholder_length (text, at);
        json_t *v = NULL;
        char *value;
        if (n) {
            snprintf (name, sizeof (name), "%.*s", (int)n - 2, at + 1);
            v = json_object_get (f->params, name);
        }
        if (!v) {
            putc (*at++, o);
            continue;
        }
        value = json_text (v);
        fputs (value ? value : "", o);
        free (value);
        at += n;
    }
    xclose_memstream (o);
    return out;
}

/* ---- conditions, in the language of searcher/space/constraint.h ---- */

/* Each {name} becomes a parameter v0, v1 ... with a single choice, its value. */
struct terms {
    char **names, **values; /* NULL-ended */
    size_t n;
    bool last;     /* the last term is what stood before ... */
    char operator; /* ... this operator: = or !, of two characters */
};

static bool is_number_text (const char *text)
{
    char *end;

    strtod (text, &end);
    return end > text && !*end;
}

/* The expression compares two parameters as numbers.  So write the second of two values as a quoted
 * text, unless both are numbers.
 */
static bool is_text_term (const struct terms *t, const char *value)
{
    return t->last && t->operator&& t->n> 0 && !strpbrk (value, "'")
           && !(is_number_text (value) && is_number_text (t->values[t->n - 1]));
}

static void put_condition_term (struct terms *t, FILE *to, char *value)
{
    if (is_text_term (t, value)) {
        fprintf (to, "'%s'", value);
        t->last = false;
    } else {
        fprintf (to, "v%zu", t->n);
        strings_addf (&t->names, "v%zu", t->n++);
        strings_add (&t->values, value);
        t->last = true;
    }
    t->operator= 0;
    free (value);
}

/* Track the characters between two terms. */
static void pass_operator (struct terms *t, const char *at)
{
    if (isspace ((unsigned char)*at) || (t->operator&& * at == '='))
        return;
    t->last = t->last && !t->operator&& strchr ("=!", *at) && at[1] == '=';
    t->operator= t->last ? *at : 0;
}

/* Write the condition as an expression, which the caller frees. */
static char *condition_expression (struct terms *t, const char *text, flow_value_f value, void *arg,
                                   struct slurmdl_error *err)
{
    char *made = NULL;
    size_t size, n;
    FILE *to = xopen_memstream (&made, &size);
    char quote = 0;
    int rv = 0;

    for (const char *at = text; rv == 0 && *at; at += n) {
        char name[256];
        char *v;
        n = placeholder_length (text, at);
        if (n == 0) {
            n = 1;
            if (strchr ("'\"", *at) && (!quote || quote == *at))
                quote = quote ? 0 : *at;
            pass_operator (t, at);
            putc (*at, to);
            continue;
        }
        snprintf (name, sizeof (name), "%.*s", (int)n - 2, at + 1);
        if (quote)
            rv = errorf (err, "remove the quotes around {%s}", name);
        else if ((v = value (name, arg, err)))
            put_condition_term (t, to, v);
        else
            rv = -1;
    }
    xclose_memstream (to);
    if (rv == 0)
        return made;
    free (made);
    return NULL;
}

static const char *compile_condition (struct constraint *c, const struct terms *t, const char *text,
                                      int *column)
{
    const char *(*labels)[2] = xcalloc (t->n + 1, sizeof (*labels));
    const char *const **list = xcalloc (t->n + 1, sizeof (*list));
    long *counts = xcalloc (t->n + 1, sizeof (*counts));
    bool *open = xcalloc (t->n + 1, sizeof (*open));
    const char *why;

    for (size_t i = 0; i < t->n; i++) {
        labels[i][0] = t->values[i];
        list[i] = labels[i];
        counts[i] = 1;
        open[i] = true;
    }
    why = constraint_compile (
        c, text,
        &(struct constraint_names){ (const char *const *)t->names, list, counts, t->n, open, true },
        column);
    free (labels);
    free (list);
    free (counts);
    free (open);
    return why;
}

int flow_condition_holds (const char *text, flow_value_f value, void *arg, bool *holds,
                          struct slurmdl_error *err)
{
    struct terms t = { 0 };
    char *made = condition_expression (&t, text, value, arg, err);
    double *x = xcalloc (t.n + 1, sizeof (*x)); /* the only choice of each */
    struct constraint c = { 0 };
    const char *why;
    int column, rv = -1;

    if (made) {
        why = compile_condition (&c, &t, made, &column);
        errno = EINVAL;
        rv = why ? errorf (err, "'when': %s: %s", text, why) : 0;
        *holds = !why && constraint_is_true (&c, x);
    }
    free (x);
    free (made);
    strings_free (t.names);
    strings_free (t.values);
    return rv;
}
