/* SPDX-License-Identifier: Apache-2.0 */
/* The container and environment in which the command of a step runs. */
#include "launcher/flow/software.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/code/pyxis.h"
#include "launcher/code/software_check.h"
#include "launcher/code/software_record.h"
#include "launcher/config/queries.h"
#include "launcher/flow/check_software.h"
#include "launcher/sys/strings.h"
#include "launcher/trainer/step.h"
#include "runtime/base/error.h"

static void add (char ***list, const char *text)
{
    if (!strings_contain ((const char *const *)*list, text))
        strings_add (list, text);
}

/* The folder of a file, under its own name. */
static void add_folder_of (char ***list, const char *file)
{
    char path[PATH_MAX], full[PATH_MAX];
    char *slash;

    snprintf (path, sizeof (path), "%s", file);
    if (*path != '/' || (slash = strrchr (path, '/')) == path)
        return;
    *slash = '\0';
    if (realpath (path, full))
        add (list, full);
}

static void add_inputs (char ***list, const struct flow_scope *c)
{
    char path[PATH_MAX];

    for (char **i = c->s->inputs; i && *i; i++) {
        char *text = flow_text (c, *i, NULL);
        bool is_absolute = text && *text == '/';
        snprintf (path, sizeof (path), "%s%s%s", is_absolute ? "" : c->r->flow->base.dir,
                  is_absolute ? "" : "/", text ? text : "");
        add_folder_of (list, path);
        free (text);
    }
}

static void add_outputs (char ***list, const struct flow_scope *c)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < c->s->noutputs; i++)
        if (flow_output_path (c, &c->s->outputs[i], path, NULL) == 0)
            add_folder_of (list, path);
}

/* Files that the steps before it have left: anywhere. */
static void add_results (char ***list, const struct flow_scope *c)
{
    for (size_t i = 0; i < c->s->nlinks; i++) {
        const struct flow_step *to = &c->r->flow->steps[c->s->links[i].step];
        long width = flow_width (c->r, to);
        for (long k = 0; k < width; k++) {
            json_t *done = flow_record (c->r, to, k, "done", 0);
            const char *name;
            json_t *o;
            json_object_foreach (json_object_get (done, "outputs"), name, o)
                add_folder_of (list, json_string_value (json_object_get (o, "path")) ?: "");
            json_decref (done);
        }
    }
}

/* The folder of all runs first: results of the cache are in others of them. */
static char **folders_of (const struct flow_scope *c)
{
    const char *root = json_string_value (json_object_get (c->r->about, "root"));
    char **list = NULL;

    add_folder_of (&list, c->r->dir);
    add (&list, c->r->dir);
    add (&list, c->r->flow->base.dir);
    if (root)
        add (&list, root);
    add_inputs (&list, c);
    add_outputs (&list, c);
    add_results (&list, c);
    return list;
}

int flow_software_enter (const struct flow_scope *c, const char *dir, struct experiment *e,
                         struct slurmdl_error *err)
{
    *e = c->s->exp;
    e->software = *flow_software_of (c->r->flow, c->s);
    e->dir = (char *)dir;
    return software_enter (e, err);
}

static int add_within (const struct software *s, char *const *folders, char ***argv,
                       char ***variables)
{
    char *text = software_text (s, folders, false);
    int rv = text ? strings_addf (variables, "DL_SOFTWARE=%s", text) : -1;

    free (text);
    return rv == 0 ? within_command (argv) : -1;
}

int flow_software_start (const struct flow_scope *c, const struct experiment *e, char ***argv,
                         char ***variables, struct slurmdl_error *err)
{
    const struct software *s = &e->software;
    char **folders;
    int rv;

    if (c->s->sweep) /* dl itself */
        return 0;
    if (experiment_has_ranks (e) && step_command (e, !s->by_srun, argv) < 0)
        return errorf (err, "out of memory");
    if (!s->image)
        return 0;
    folders = folders_of (c);
    if (s->by_srun)
        rv = container_srun_words (s, e->dir, folders, *variables, argv, err);
    else if ((rv = add_within (s, folders, argv, variables)) < 0)
        errorf (err, "out of memory");
    strings_free (folders);
    return rv;
}
