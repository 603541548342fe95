/* SPDX-License-Identifier: Apache-2.0 */
/* Expand the {names} in the texts of a step: its condition, its command and its variables. */
#include "launcher/config/experiment.h"
#include "launcher/flow/run.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/hparams.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/error.h"

/* ---- what other steps left ---- */

static json_t *value_in_result (const json_t *done, const char *key)
{
    const json_t *output = json_object_get (json_object_get (done, "outputs"), key);
    json_t *v = output ? json_object_get (output, "path")
                       : json_object_get (json_object_get (done, "values"), key);

    return json_incref (v);
}

static json_t *value_of_task (const struct flow_scope *c, const struct flow_step *of, long task,
                              const char *key, struct slurmdl_error *err)
{
    json_t *v = value_in_result (flow_done (c->r, of, task), key);

    errno = ENOENT;
    if (!v)
        errorf (err, "{%s.%s}: step '%s' has no such result: it is %s", of->name, key, of->name,
                task_states[flow_task_state (c->r, of, task)]);
    return v;
}

static bool is_same_task (const struct flow_scope *c, const struct flow_step *of)
{
    for (size_t i = 0; i < c->s->nlinks; i++)
        if (&c->r->flow->steps[c->s->links[i].step] == of)
            return c->s->links[i].wait == AFTER_EACH;
    return false;
}

static json_t *value_of_step (const struct flow_scope *c, const struct flow_step *of,
                              const char *key, struct slurmdl_error *err)
{
    long width = flow_width (c->r, of);
    json_t *list;

    if (!of->foreach)
        return value_of_task (c, of, 0, key, err);
    if (is_same_task (c, of))
        return value_of_task (c, of, c->task, key, err);
    list = json_array ();
    for (long i = 0; list && i < width; i++) {
        json_t *v = value_of_task (c, of, i, key, err);
        if (!v) {
            json_decref (list);
            return NULL;
        }
        json_array_append_new (list, v);
    }
    return list;
}

static json_t *own_output_path (const struct flow_scope *c, const char *name,
                                struct slurmdl_error *err)
{
    char path[PATH_MAX];

    for (size_t i = 0; i < c->s->noutputs; i++)
        if (!strcmp (c->s->outputs[i].name, name))
            return flow_output_path (c, &c->s->outputs[i], path, err) < 0 ? NULL
                                                                          : json_string (path);
    return NULL;
}

/* The value of a {name}, which is a list if several tasks have one; the caller releases it.  NULL
 * with ENOENT and 'err' if a step did not leave it.
 */
static json_t *value_of_name (const struct flow_scope *c, const char *name,
                              struct slurmdl_error *err)
{
    const char *dot = strchr (name, '.');
    const struct flow_step *of;
    char step[256];

    if (!dot) {
        json_t *v = json_object_get (c->r->flow->params, name);
        if (v)
            return json_incref (v);
        if (!strcmp (name, "item"))
            return flow_item (c->r, c->s, c->task);
        if (!strcmp (name, "index"))
            return json_integer (c->task);
        if (!strcmp (name, "flow_dir"))
            return json_string (c->r->dir);
        return json_string (!strcmp (name, "outcome") ? c->outcome ?: "" : c->failed ?: "");
    }
    snprintf (step, sizeof (step), "%.*s", (int)(dot - name), name);
    if (!strcmp (step, "out"))
        return own_output_path (c, dot + 1, err);
    of = flow_step_find (c->r->flow, step);
    return of ? value_of_step (c, of, dot + 1, err) : NULL;
}

/* ---- texts ---- */

/* Where values go: into the text itself, or into variables that the shell expands in any quotes. */
struct filling {
    const struct flow_scope *c;
    FILE *out;
    char ***variables; /* NULL: into the text itself */
    size_t nvariables;
    char quote; /* the open quote of the shell, or 0 */
};

static void write_step_value (struct filling *f, const json_t *v, bool first)
{
    char *text = json_text (v);

    if (!first)
        putc (' ', f->out);
    if (!f->variables)
        fputs (text ? text : "", f->out);
    else {
        strings_addf (f->variables, "DL_FLOW_VALUE_%zu=%s", f->nvariables, text ? text : "");
        fprintf (f->out,
                 f->quote == '"'    ? "${DL_FLOW_VALUE_%zu}"
                 : f->quote == '\'' ? "'\"${DL_FLOW_VALUE_%zu}\"'"
                                    : "\"${DL_FLOW_VALUE_%zu}\"",
                 f->nvariables++);
    }
    free (text);
}

static int write_name (struct filling *f, const char *name, struct slurmdl_error *err)
{
    json_t *v = value_of_name (f->c, name, err), *item;
    size_t i;

    if (!v)
        return -1;
    if (json_is_array (v))
        json_array_foreach (v, i, item)
            write_step_value (f, item, i == 0);
    else
        write_step_value (f, v, true);
    json_decref (v);
    return 0;
}

static const char *copy_text_char (struct filling *f, const char *at)
{
    if (*at == '\\' && f->quote != '\'' && at[1])
        putc (*at++, f->out);
    else if (strchr ("'\"", *at) && (!f->quote || f->quote == *at))
        f->quote = f->quote ? '\0' : *at;
    putc (*at, f->out);
    return at + 1;
}

static char *fill_text (struct filling *f, const char *text, struct slurmdl_error *err)
{
    char *out = NULL;
    size_t size;
    char name[256];
    int rv = 0;

    f->out = xopen_memstream (&out, &size);
    for (const char *at = text; rv == 0 && *at;) {
        size_t n = placeholder_length (text, at);
        if (n) {
            snprintf (name, sizeof (name), "%.*s", (int)n - 2, at + 1);
            rv = write_name (f, name, err);
            at += n;
        } else
            at = copy_text_char (f, at);
    }
    xclose_memstream (f->out);
    if (rv == 0)
        return out;
    free (out);
    return NULL;
}

char *flow_text (const struct flow_scope *c, const char *text, struct slurmdl_error *err)
{
    struct filling f = { .c = c };

    return fill_text (&f, text, err);
}

int flow_output_path (const struct flow_scope *c, const struct flow_output *o, char path[PATH_MAX],
                      struct slurmdl_error *err)
{
    char *text = flow_text (c, o->path, err);
    int n = text ? path_from (path, c->folder, text) : 0;

    /* a value must not lead out of the attempt's folder */
    if (text && (n >= PATH_MAX || strstr (text, ".."))) {
        errno = EINVAL;
        errorf (err, "output '%s': invalid path '%s'", o->name, text);
        n = 0;
    }
    free (text);
    return n > 0 ? 0 : -1;
}

/* ---- the command ---- */

/* A word that consists of one {name} becomes as many words as it has values. */
static int add_command_words (const struct flow_scope *c, const char *word, char ***argv,
                              struct slurmdl_error *err)
{
    size_t n = placeholder_length (word, word), i;
    char name[256];
    json_t *v = NULL, *item;
    char *text = NULL;
    bool good;

    if (n && !word[n]) {
        snprintf (name, sizeof (name), "%.*s", (int)n - 2, word + 1);
        if (!(v = value_of_name (c, name, err)))
            return -1;
    }
    if (json_is_array (v))
        json_array_foreach (v, i, item) {
            text = json_text (item);
            strings_add (argv, text ? text : "");
            free (text);
        }
    else if ((text = flow_text (c, word, err))) {
        strings_add (argv, text);
        free (text);
    }
    good = json_is_array (v) || text;
    json_decref (v);
    return good ? 0 : -1;
}

int flow_command (const struct flow_scope *c, char ***argv, char ***variables,
                  struct slurmdl_error *err)
{
    struct filling f = { .c = c, .variables = variables };
    const struct experiment *e = c->s->exp;
    char *text = NULL;
    int rv = 0;

    if (!e->entrypoint) {
        for (char **a = e->argv; rv == 0 && a && *a; a++)
            rv = add_command_words (c, *a, argv, err);
        return rv;
    }
    if (!(text = fill_text (&f, e->entrypoint, err)))
        return -1;
    strings_add (argv, "/bin/sh");
    strings_add (argv, "-c");
    strings_add (argv, text);
    free (text);
    return 0;
}

/* ---- conditions ---- */

static char *condition_value (const char *name, void *arg, struct slurmdl_error *err)
{
    char text[300];

    snprintf (text, sizeof (text), "{%s}", name);
    return flow_text (arg, text, err);
}

int flow_condition (const struct flow_scope *c, bool *holds, struct slurmdl_error *err)
{
    *holds = true;
    return c->s->when ? flow_condition_holds (c->s->when, condition_value, (void *)c, holds, err)
                      : 0;
}

static int set_given_variables (const struct flow_scope *c, char *const *given, char ***list,
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

static int set_output_variables (const struct flow_scope *c, char ***list,
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
    if (!c->s->sweep) { /* libslurmdl logs and saves there, and dl log logs */
        strings_addf (list, "DL_ATTEMPT_DIR=%s", c->folder);
        strings_addf (list, "DL_ATTEMPT=%ld", (long)c->attempt);
    }
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
    if (set_output_variables (c, list, err) < 0
        || set_given_variables (c, c->r->flow->base->variables, list, err) < 0)
        return -1;
    return set_given_variables (c, c->s->exp->variables, list, err);
}
