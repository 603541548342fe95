/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the command of a step. */
#include "launcher/flow/variables.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/strings.h"

static void add (char ***list, const char *name, const char *value)
{
    char *entry = NULL;

    if (asprintf (&entry, "%s=%s", name, value) > 0)
        strings_add (list, entry, strlen (entry));
    free (entry);
}

static int set_given (const struct flow_scope *c,
                      char *const *given,
                      char ***list,
                      struct slurmdl_error *err)
{
    for (; given && *given; given++) {
        char *text = flow_text (c, *given, err);
        if (!text)
            return -1;
        strings_add (list, text, strlen (text));
        free (text);
    }
    return 0;
}

static int set_outputs (const struct flow_scope *c,
                        char ***list,
                        struct slurmdl_error *err)
{
    char path[PATH_MAX], name[256];

    for (size_t i = 0; i < c->s->noutputs; i++) {
        const struct flow_output *o = &c->s->outputs[i];
        if (flow_output_path (c, o, path, err) < 0)
            return -1;
        snprintf (name, sizeof (name), "DL_OUT_%s", o->name);
        for (char *at = name; *at; at++)
            if (!isalnum ((unsigned char)*at))
                *at = '_';
        add (list, name, path);
    }
    return 0;
}

int flow_variables (const struct flow_scope *c,
                    char ***list,
                    struct slurmdl_error *err)
{
    json_t *item;
    char text[PATH_MAX + 16];

    add (list, "DL_FLOW_DIR", c->r->dir);
    add (list, "DL_STEP", c->s->name);
    add (list, "DL_STEP_DIR", c->folder);
    snprintf (text, sizeof (text), "%s/values", c->folder);
    add (list, "DL_VALUES", text);
    if ((item = flow_item (c->r, c->s, c->task))) {
        char *value = flow_text (c, "{item}", err);
        add (list, "DL_ITEM", value ? value : "");
        free (value);
    }
    json_decref (item);
    if (c->outcome)
        add (list, "DL_FLOW_OUTCOME", c->outcome);
    if (c->failed)
        add (list, "DL_FLOW_FAILED", c->failed);
    if (set_outputs (c, list, err) < 0
        || set_given (c, c->r->flow->base.variables, list, err) < 0)
        return -1;
    return set_given (c, c->s->exp.variables, list, err);
}
