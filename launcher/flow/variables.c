/* SPDX-License-Identifier: Apache-2.0 */
/* The variables of the command of a step. */
#include "launcher/flow/variables.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/sys/strings.h"

static int set_given (const struct flow_scope *c, char *const *given, char ***list,
                      struct slurmdl_error *err)
{
    for (; given && *given; given++) {
        char *text = flow_text (c, *given, err);
        if (!text)
            return -1;
        strings_add (list, text);
        free (text);
    }
    return 0;
}

static int set_outputs (const struct flow_scope *c, char ***list, struct slurmdl_error *err)
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
        strings_addf (list, "%s=%s", name, path);
    }
    return 0;
}

int flow_variables (const struct flow_scope *c, char ***list, struct slurmdl_error *err)
{
    json_t *item;

    strings_addf (list, "DL_FLOW_DIR=%s", c->r->dir);
    strings_addf (list, "DL_STEP=%s", c->s->name);
    strings_addf (list, "DL_STEP_DIR=%s", c->folder);
    strings_addf (list, "DL_VALUES=%s/values", c->folder);
    if ((item = flow_item (c->r, c->s, c->task))) {
        char *value = flow_text (c, "{item}", err);
        strings_addf (list, "DL_ITEM=%s", value ? value : "");
        free (value);
    }
    json_decref (item);
    if (c->outcome)
        strings_addf (list, "DL_FLOW_OUTCOME=%s", c->outcome);
    if (c->failed)
        strings_addf (list, "DL_FLOW_FAILED=%s", c->failed);
    if (set_outputs (c, list, err) < 0 || set_given (c, c->r->flow->base.variables, list, err) < 0)
        return -1;
    return set_given (c, c->s->exp.variables, list, err);
}
