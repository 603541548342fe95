/* SPDX-License-Identifier: Apache-2.0 */
/* Check the files that the steps of a flow name: of sweeps, inputs and outputs.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/command_check.h"
#include "launcher/config/edit.h"
#include "launcher/config/trial_gpus.h"
#include "launcher/flow/check.h"
#include "launcher/sys/strings.h"

static bool has_names (char *const *list)
{
    while (list && *list && !flow_has_name (*list))
        list++;
    return list && *list;
}

/* Its mistakes are told now, not after hours.  What the best trial will have is
 * known from it.
 */
void flow_check_sweep (const struct flow_checking *c)
{
    struct flow_step *s = c->s;
    const struct edit edit = { .sets = s->set };
    const char *file = c->p->file;
    struct experiment *e;
    char path[PATH_MAX];

    if (!s->sweep || c->f->is_frozen || flow_has_name (s->sweep) || has_names (s->set)
        || !c->f->base.dir)
        return;
    snprintf (path, sizeof (path), "%s%s%s", *s->sweep == '/' ? "" : c->f->base.dir,
              *s->sweep == '/' ? "" : "/", s->sweep);
    e = experiment_read_edited (path, &edit, c->p);
    if (e)
        command_check_files (e, c->p);
    c->p->file = file;
    for (size_t i = 0; e && i < e->nhparams; i++)
        strings_add (&s->values, e->hparams[i].path);
    experiment_destroy (e);
}

/* In the folder of the file; a flow's copy was checked when it was made. */
void flow_check_command (const struct flow_checking *c)
{
    struct experiment e = c->s->exp;

    e.dir = c->f->base.dir;
    e.entrypoint_origin = flow_check_origin (c, "entrypoint");
    if (c->f->is_frozen)
        return;
    command_check_files (&e, c->p);
    experiment_check_gpus (&e, flow_check_origin (c, "resources"), c->p);
}

/* What is to be there beforehand. */
void flow_check_inputs (const struct flow_checking *c)
{
    char path[PATH_MAX];

    for (char **i = c->s->inputs; i && *i; i++) {
        char *text = flow_with_params (c->f, *i);
        snprintf (path,
                  sizeof (path),
                  "%s%s%s",
                  text && *text == '/' ? "" : c->f->base.dir ?: "",
                  text && *text == '/' ? "" : "/",
                  text ? text : "");
        if (text && !flow_has_name (text) && !c->f->is_frozen && access (path, R_OK) < 0)
            problem_at (c->p, flow_check_origin (c, "inputs"), "step '%s': the input %s: %s",
                        c->s->name, path, strerror (errno));
        free (text);
    }
}

static void check_output (const struct flow_checking *c, size_t step, size_t k)
{
    const struct flow *f = c->f;
    const struct flow_step *s = c->s;
    const char *path = s->outputs[k].path;
    struct origin origin = flow_check_origin (c, "outputs");

    if (*path == '/' && s->foreach && !strstr (path, "{item}") && !strstr (path, "{index}"))
        problem_at (c->p, origin,
                    "step '%s': all its tasks write '%s': put {item} or "
                    "{index} into the path",
                    s->name, path);
    for (size_t i = 0; i <= step; i++)
        for (size_t j = 0; j < (i == step ? k : f->steps[i].noutputs); j++)
            if (!strcmp (f->steps[i].outputs[j].path, path) && (i == step || *path == '/'))
                problem_at (c->p, origin,
                            "step '%s' and step '%s' write the same output, "
                            "'%s'",
                            f->steps[i].name, s->name, path);
}

void flow_check_outputs (struct flow_checking *c)
{
    struct flow *f = c->f;

    for (size_t i = 0; i < f->n; i++) {
        c->s = &f->steps[i];
        for (size_t k = 0; k < c->s->noutputs; k++) {
            struct flow_output *o = &c->s->outputs[k];
            char *path = flow_with_params (f, o->path);
            free (o->path);
            o->path = path;
            check_output (c, i, k);
        }
    }
}
