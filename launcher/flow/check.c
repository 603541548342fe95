/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a flow wait for which, and what cannot be. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launcher/cmd/command_check.h"
#include "launcher/config/edit.h"
#include "launcher/config/placeholder.h"
#include "launcher/config/values.h"
#include "launcher/flow/flow.h"
#include "launcher/sys/array.h"
#include "launcher/sys/strings.h"
#include "runtime/base/word.h"

/* What the texts of a step may name besides parameters and steps. */
static const char *const builtins[] = { "item",         "index",    "outcome",
                                        "failed_steps", "flow_dir", NULL };

static bool is_listed (const char *const *list, const char *word)
{
    while (list && *list && strcmp (*list, word))
        list++;
    return list && *list;
}

/* ---- steps ---- */

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

/* ---- the {names} of a step ---- */

int flow_names_of (const char *text,
                   const char *where,
                   flow_name_f f,
                   void *arg)
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

static int
names_of_list (char *const *list, const char *where, flow_name_f f, void *arg)
{
    int rv = 0;

    for (; rv == 0 && list && *list; list++)
        rv = flow_names_of (*list, where, f, arg);
    return rv;
}

int flow_each_name (const struct flow_step *s, flow_name_f f, void *arg)
{
    int rv = flow_names_of (s->exp.entrypoint, "entrypoint", f, arg);

    for (size_t i = 0; rv == 0 && i < s->noutputs; i++)
        rv = flow_names_of (s->outputs[i].path, "outputs", f, arg);
    return rv || (rv = names_of_list (s->exp.argv, "entrypoint", f, arg))
                   || (rv = flow_names_of (s->when, "when", f, arg))
                   || (rv = flow_names_of (s->sweep, "sweep", f, arg))
                   || (rv = names_of_list (s->set, "set", f, arg))
                   || (rv = names_of_list (s->inputs, "inputs", f, arg))
                   || (rv = names_of_list (
                           s->exp.variables, "environment", f, arg))
               ? rv
               : 0;
}

bool flow_step_has (const struct flow_step *s, const char *value)
{
    static const char *const of_sweep[] = {
        "checkpoint", "experiment", "trial", "metric", NULL
    };

    for (size_t i = 0; i < s->noutputs; i++)
        if (!strcmp (s->outputs[i].name, value))
            return true;
    if (is_listed ((const char *const *)s->values, value))
        return true;
    /* without a list its file was not read */
    return s->sweep && (!s->values || is_listed (of_sweep, value));
}

/* ---- links ---- */

struct checking {
    struct flow *f;
    struct flow_step *s;
    struct problems *p;
};

static void add_link (struct flow_step *s, size_t to, enum flow_wait wait)
{
    struct flow_link *list;

    for (size_t i = 0; i < s->nlinks; i++)
        if (s->links[i].step == to)
            return;
    if (!(list = array_grow (s->links, s->nlinks, sizeof (*list))))
        return;
    s->links = list;
    list[s->nlinks++] = (struct flow_link){ to, wait };
}

static const struct flow_step *
find (const struct checking *c, const char *name, const char *where)
{
    const struct flow_step *to = flow_step_find (c->f, name);
    const char **words = calloc (c->f->n + 1, sizeof (*words));
    const char *meant;

    for (size_t i = 0; words && i < c->f->n; i++)
        words[i] = c->f->steps[i].name;
    meant = words ? nearest_word (name, words) : NULL;
    if (!to)
        problem_at (c->p,
                    c->s->origin,
                    "step '%s': '%s' names the step '%s', which is not "
                    "there%s%s%s",
                    c->s->name,
                    where,
                    name,
                    meant ? "; did you mean '" : "",
                    meant ? meant : "",
                    meant ? "'?" : "");
    else if (to->on_exit && !c->s->on_exit)
        problem_at (c->p,
                    c->s->origin,
                    "step '%s': '%s' names '%s', which runs when all others "
                    "have ended (on_exit)",
                    c->s->name,
                    where,
                    name);
    else if (to == c->s)
        problem_at (c->p,
                    c->s->origin,
                    "step '%s' waits for itself ('%s'); {out.NAME} is its own "
                    "output",
                    name,
                    where);
    free (words);
    return to == c->s || (to && to->on_exit && !c->s->on_exit) ? NULL : to;
}

static void add_links (struct checking *c,
                       char *const *names,
                       const char *where,
                       enum flow_wait wait)
{
    for (; names && *names; names++) {
        const struct flow_step *to = find (c, *names, where);
        if (to)
            add_link (c->s, flow_step_number (c->f, to), wait);
    }
}

static void unknown_name (const struct checking *c,
                          const char *name,
                          const char *where,
                          const char *const *words,
                          const char *whose)
{
    const char *meant = nearest_word (name, words);

    problem_at (c->p,
                c->s->origin,
                "step '%s': '%s' has {%s}: %s%s%s%s",
                c->s->name,
                where,
                name,
                whose,
                meant ? "; did you mean '" : "",
                meant ? meant : "",
                meant ? "'?" : "");
}

static void
check_plain (const struct checking *c, const char *name, const char *where)
{
    const char *words[96] = { 0 };
    const char *key;
    json_t *v;
    size_t n = 0;

    if (json_object_get (c->f->params, name) || is_listed (builtins, name)) {
        bool is_item = !strcmp (name, "item") || !strcmp (name, "index");
        bool is_end =
            !strcmp (name, "outcome") || !strcmp (name, "failed_steps");
        if (is_item && !c->s->foreach)
            unknown_name (
                c, name, where, words, "only a step with 'foreach' has it");
        else if (is_end && !c->s->on_exit)
            unknown_name (
                c, name, where, words, "only a step with 'on_exit' has it");
        return;
    }
    for (const char *const *b = builtins; *b; b++)
        words[n++] = *b;
    json_object_foreach (
        c->f->params, key, v) if (n < sizeof (words) / sizeof (*words) - 1)
        words[n++] = key;
    unknown_name (c, name, where, words, "no parameter");
}

static int check_name (const char *name, const char *where, void *arg)
{
    struct checking *c = arg;
    const char *dot = strchr (name, '.');
    const struct flow_step *to;
    char step[256];

    if (!dot) {
        check_plain (c, name, where);
        return 0;
    }
    snprintf (step, sizeof (step), "%.*s", (int)(dot - name), name);
    if (!strcmp (step, "out")) {
        for (size_t i = 0; i < c->s->noutputs; i++)
            if (!strcmp (c->s->outputs[i].name, dot + 1))
                return 0;
        unknown_name (
            c, name, where, (const char *const[]){ NULL }, "no such output");
        return 0;
    }
    if (!(to = find (c, step, where)))
        return 0;
    if (!flow_step_has (to, dot + 1)) {
        char why[256];
        snprintf (why,
                  sizeof (why),
                  "step '%s' has neither an output nor a value of that name "
                  "(outputs, values)",
                  step);
        unknown_name (c,
                      name,
                      where,
                      to->values ? (const char *const *)to->values
                                 : (const char *const[]){ NULL },
                      why);
    }
    add_link (c->s,
              flow_step_number (c->f, to),
              c->s->on_exit ? AFTER_ANY : AFTER_OK);
    return 0;
}

/* ---- fan-out ---- */

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
    for (long long i = v[0]; (v[2] > 0 ? i <= v[1] : i >= v[1])
                             && json_array_size (list) <= FLOW_WIDTH_MAX;
         i += v[2])
        json_array_append_new (list, json_integer (i));
    return list;
}

/* Parameters have their values when a file is checked. */
static char *with_params (const struct flow *f, const char *text)
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

static void check_source (struct checking *c, const char *name)
{
    const char *dot = strchr (name, '.');
    const struct flow_step *to;
    char step[256];

    snprintf (step, sizeof (step), "%.*s", (int)(dot - name), name);
    if (!(to = find (c, step, "foreach")))
        return;
    if (!is_listed ((const char *const *)to->values, dot + 1) || to->foreach)
        problem_at (c->p,
                    c->s->origin,
                    "step '%s': 'foreach' needs a list that one task reports: "
                    "'%s' must be among the 'values' of '%s', which must have "
                    "no 'foreach'",
                    c->s->name,
                    dot + 1,
                    step);
    else if (c->s->on_exit)
        problem_at (c->p,
                    c->s->origin,
                    "step '%s': with on_exit 'foreach' must be a list",
                    c->s->name);
    add_link (c->s, flow_step_number (c->f, to), AFTER_OK);
    c->s->source = (long)flow_step_number (c->f, to);
    c->s->source_value = strdup (dot + 1);
}

static void check_foreach (struct checking *c)
{
    struct flow_step *s = c->s;
    const char *text = json_string_value (s->foreach);
    size_t n = text ? placeholder_length (text, text) : 0;
    char *full;
    char name[256];

    if (!s->foreach)
        return;
    snprintf (
        name, sizeof (name), "%.*s", n ? (int)n - 2 : 0, n ? text + 1 : "");
    if (json_is_array (s->foreach))
        s->items = json_incref (s->foreach);
    else if (n && !text[n] && strchr (name, '.')) {
        check_source (c, name);
        return;
    } else if (n && !text[n]
               && json_is_array (json_object_get (c->f->params, name)))
        s->items = json_incref (json_object_get (c->f->params, name));
    else if ((full = with_params (c->f, text))) {
        s->items = range (full);
        free (full);
    }
    if (!s->items)
        problem_at (c->p,
                    s->origin,
                    "step '%s': 'foreach' is '%s', but must be a list, a range "
                    "\"1..8\" or {name} of a list",
                    s->name,
                    text);
    else if (json_array_size (s->items) == 0
             || json_array_size (s->items) > FLOW_WIDTH_MAX)
        problem_at (c->p,
                    s->origin,
                    "step '%s': 'foreach' has %s elements, but must have 1 to "
                    "%d",
                    s->name,
                    json_array_size (s->items) ? "too many" : "no",
                    FLOW_WIDTH_MAX);
}

static void check_each (const struct checking *c)
{
    const struct flow_step *s = c->s;

    for (size_t i = 0; i < s->nlinks; i++) {
        const struct flow_step *to = &c->f->steps[s->links[i].step];
        if (s->links[i].wait == AFTER_EACH
            && (!s->foreach || !to->foreach
                || (s->items ? json_array_size (s->items)
                                   != json_array_size (to->items)
                             : s->source != to->source
                                   || strcmp (s->source_value ?: "",
                                              to->source_value ?: ""))))
            problem_at (c->p,
                        s->origin,
                        "step '%s': 'after_each' needs a 'foreach' as long as "
                        "that of '%s'",
                        s->name,
                        to->name);
    }
}

/* ---- a sweep's file ---- */

static bool has_name (const char *text)
{
    for (const char *at = text; at && *at; at++)
        if (placeholder_length (text, at))
            return true;
    return false;
}

static bool has_names (char *const *list)
{
    while (list && *list && !has_name (*list))
        list++;
    return list && *list;
}

/* Its mistakes are told now, not after hours.  What the best trial will have is
 * known from it.
 */
static void check_sweep (const struct checking *c)
{
    struct flow_step *s = c->s;
    const struct edit edit = { .sets = s->set };
    const char *file = c->p->file;
    struct experiment *e;
    char path[PATH_MAX];

    if (!s->sweep || c->f->is_frozen || has_name (s->sweep)
        || has_names (s->set) || !c->f->base.dir)
        return;
    snprintf (path,
              sizeof (path),
              "%s%s%s",
              *s->sweep == '/' ? "" : c->f->base.dir,
              *s->sweep == '/' ? "" : "/",
              s->sweep);
    e = experiment_read_edited (path, &edit, c->p);
    if (e)
        command_check_files (e, c->p);
    c->p->file = file;
    for (size_t i = 0; e && i < e->nhparams; i++)
        strings_add (
            &s->values, e->hparams[i].path, strlen (e->hparams[i].path));
    experiment_destroy (e);
}

/* What is to be there beforehand. */
static void check_inputs (const struct checking *c)
{
    char path[PATH_MAX];

    for (char **i = c->s->inputs; i && *i; i++) {
        char *text = with_params (c->f, *i);
        snprintf (path,
                  sizeof (path),
                  "%s%s%s",
                  text && *text == '/' ? "" : c->f->base.dir ?: "",
                  text && *text == '/' ? "" : "/",
                  text ? text : "");
        if (text && !has_name (text) && !c->f->is_frozen
            && access (path, R_OK) < 0)
            problem_at (c->p,
                        c->s->origin,
                        "step '%s': the input %s: %s",
                        c->s->name,
                        path,
                        strerror (errno));
        free (text);
    }
}

/* ---- a step ---- */

static void wrong (const struct checking *c, const char *what)
{
    problem_at (c->p, c->s->origin, "step '%s': %s", c->s->name, what);
}

static void check_step (struct checking *c)
{
    struct flow_comparison list[COMPARISONS_MAX];
    const struct flow_step *s = c->s;
    int n = s->when ? flow_comparisons (s->when, list) : 0;

    flow_comparisons_free (list, n);
    if (!s->exp.entrypoint && !s->exp.argv && !s->sweep)
        wrong (c, "'entrypoint' is missing (or 'sweep', an experiment file)");
    else if ((s->exp.entrypoint || s->exp.argv) && s->sweep)
        wrong (c, "it has an 'entrypoint' and a 'sweep': one of them");
    if (s->set && !s->sweep)
        wrong (c, "'set' is for a 'sweep'");
    if (s->sweep && s->noutputs)
        wrong (
            c,
            "the outputs of a sweep are 'checkpoint', 'experiment', 'trial', "
            "'metric' and its hyperparameters");
    if (n < 0)
        wrong (
            c,
            "'when' must be comparisons, as {train.accuracy} >= 0.9 && {kind} "
            "== \"full\"");
    if (s->on_exit && (s->after || s->after_any || s->after_each))
        wrong (c, "a step with on_exit comes after all others: no 'after'");
    if (!strcmp (s->name, "out") || is_listed (builtins, s->name)
        || json_object_get (c->f->params, s->name))
        wrong (c, "this name means something else in {}: take another one");
}

/* In the folder of the file; a flow's copy was checked when it was made. */
static void check_command (struct checking *c)
{
    struct experiment e = c->s->exp;

    e.dir = c->f->base.dir;
    e.entrypoint_origin = c->s->origin;
    if (!c->f->is_frozen)
        command_check_files (&e, c->p);
}

static void check_links (struct checking *c)
{
    check_step (c);
    check_command (c);
    check_inputs (c);
    add_links (c, c->s->after, "after", AFTER_OK);
    add_links (c, c->s->after_any, "after_any", AFTER_ANY);
    add_links (c, c->s->after_each, "after_each", AFTER_EACH);
    check_foreach (c);
    flow_each_name (c->s, check_name, c);
}

/* ---- two that write one file ---- */

static void check_output (const struct checking *c, size_t step, size_t k)
{
    const struct flow *f = c->f;
    const struct flow_step *s = &f->steps[step];
    const char *path = s->outputs[k].path;

    if (*path == '/' && s->foreach && !strstr (path, "{item}")
        && !strstr (path, "{index}"))
        problem_at (c->p,
                    s->origin,
                    "step '%s': all its tasks write '%s': put {item} or "
                    "{index} into the path",
                    s->name,
                    path);
    for (size_t i = 0; i <= step; i++)
        for (size_t j = 0; j < (i == step ? k : f->steps[i].noutputs); j++)
            if (!strcmp (f->steps[i].outputs[j].path, path)
                && (i == step || *path == '/'))
                problem_at (c->p,
                            s->origin,
                            "step '%s' and step '%s' write the same output, "
                            "'%s'",
                            f->steps[i].name,
                            s->name,
                            path);
}

static void check_outputs (const struct checking *c)
{
    struct flow *f = c->f;

    for (size_t i = 0; i < f->n; i++)
        for (size_t k = 0; k < f->steps[i].noutputs; k++) {
            struct flow_output *o = &f->steps[i].outputs[k];
            char *path = with_params (f, o->path);
            free (o->path);
            o->path = path;
            check_output (c, i, k);
        }
}

void flow_check (struct flow *f, struct problems *p)
{
    struct checking c = { f, NULL, p };

    for (const char *const *b = builtins; *b; b++)
        if (json_object_get (f->params, *b))
            problem_at (
                p, NO_ORIGIN, "no parameter can have the name '%s'", *b);
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        check_sweep (&c);
    }
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        check_links (&c);
    }
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        check_each (&c);
    }
    check_outputs (&c);
    if (p->count == 0)
        flow_order (f, p);
}
