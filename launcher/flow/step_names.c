/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a flow by name, and the {names} in their texts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/placeholder.h"
#include "launcher/config/values.h"
#include "launcher/flow/flow.h"
#include "launcher/sys/strings.h"

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

static int names_of (const char *text, const char *where, flow_name_f f, void *arg)
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
        rv = names_of (*list, where, f, arg);
    return rv;
}

int flow_each_name (const struct flow_step *s, flow_name_f f, void *arg)
{
    int rv = names_of (s->exp.entrypoint, "entrypoint", f, arg);

    for (size_t i = 0; rv == 0 && i < s->noutputs; i++)
        rv = names_of (s->outputs[i].path, "outputs", f, arg);
    return rv || (rv = names_of_list (s->exp.argv, "entrypoint", f, arg))
                   || (rv = names_of (s->when, "when", f, arg))
                   || (rv = names_of (s->sweep, "sweep", f, arg))
                   || (rv = names_of_list (s->set, "set", f, arg))
                   || (rv = names_of_list (s->inputs, "inputs", f, arg))
                   || (rv = names_of_list (s->exp.variables, "environment", f, arg))
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
    /* without a list its file was not read */
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
    FILE *o = open_memstream (&out, &size);
    char name[256];

    for (const char *at = text; o && *at;) {
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
    if (o)
        fclose (o);
    return out;
}
