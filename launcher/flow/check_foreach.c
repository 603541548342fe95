/* SPDX-License-Identifier: Apache-2.0 */
/* Check the lists for which the steps of a flow have tasks. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/placeholder.h"
#include "launcher/flow/check.h"
#include "launcher/sys/strings.h"

static json_t *range (const char *text)
{
    long long v[3] = { 0, 0, 1 };
    json_t *list;
    char *end = (char *)text;
    int n = 0;

    for (; n < 3; n++) {
        const char *from = n ? end + 2 : end;
        if (n && strncmp (end, "..", 2))
            break;
        errno = 0;
        v[n] = strtoll (from, &end, 10);
        if (end == from || errno)
            return NULL;
    }
    if (n < 2 || *end || v[2] == 0)
        return NULL;
    list = json_array ();
    for (long long i = v[0];
         (v[2] > 0 ? i <= v[1] : i >= v[1]) && json_array_size (list) <= FLOW_WIDTH_MAX; i += v[2])
        json_array_append_new (list, json_integer (i));
    return list;
}

static void check_source (struct flow_checking *c, const char *name)
{
    const char *dot = strchr (name, '.');
    const struct flow_step *to;
    char step[256];

    snprintf (step, sizeof (step), "%.*s", (int)(dot - name), name);
    if (!(to = flow_check_find (c, step, "foreach")))
        return;
    if (!strings_contain ((const char *const *)to->values, dot + 1) || to->foreach)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': 'foreach' needs a list that one task reports: "
                    "'%s' must be among the 'values' of '%s', which must have "
                    "no 'foreach'",
                    c->s->name, dot + 1, step);
    else if (c->s->on_exit)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': with on_exit 'foreach' must be a list", c->s->name);
    flow_add_link (c->s, flow_step_number (c->f, to), AFTER_OK);
    c->s->source = (long)flow_step_number (c->f, to);
    c->s->source_value = strdup (dot + 1);
}

void flow_check_foreach (struct flow_checking *c)
{
    struct flow_step *s = c->s;
    const char *text = json_string_value (s->foreach);
    size_t n = text ? placeholder_length (text, text) : 0;
    char *full;
    char name[256];

    if (!s->foreach)
        return;
    snprintf (name, sizeof (name), "%.*s", n ? (int)n - 2 : 0, n ? text + 1 : "");
    if (json_is_array (s->foreach))
        s->items = json_incref (s->foreach);
    else if (n && !text[n] && strchr (name, '.')) {
        check_source (c, name);
        return;
    } else if (n && !text[n] && json_is_array (json_object_get (c->f->params, name)))
        s->items = json_incref (json_object_get (c->f->params, name));
    else if ((full = flow_with_params (c->f, text))) {
        s->items = range (full);
        free (full);
    }
    if (!s->items)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': 'foreach' is '%s', but must be a list, a range "
                    "\"1..8\" or {name} of a list",
                    s->name, text);
    else if (json_array_size (s->items) == 0 || json_array_size (s->items) > FLOW_WIDTH_MAX)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': 'foreach' has %s elements, but must have 1 to "
                    "%d",
                    s->name, json_array_size (s->items) ? "too many" : "no", FLOW_WIDTH_MAX);
}

void flow_check_each (const struct flow_checking *c)
{
    const struct flow_step *s = c->s;

    for (size_t i = 0; i < s->nlinks; i++) {
        const struct flow_step *to = &c->f->steps[s->links[i].step];
        if (s->links[i].wait == AFTER_EACH
            && (!s->foreach || !to->foreach
                || (s->items ? json_array_size (s->items) != json_array_size (to->items)
                             : s->source != to->source
                                   || strcmp (s->source_value ?: "", to->source_value ?: ""))))
            problem_at (c->p, flow_check_origin (c, "after_each"),
                        "step '%s': 'after_each' needs a 'foreach' as long as "
                        "that of '%s'",
                        s->name, to->name);
    }
}
