/* SPDX-License-Identifier: Apache-2.0 */
/* Check a flow: which steps wait for which, and whether they can. */
#include "launcher/config/experiment.h"
#include "launcher/config/space.h"
#include "launcher/flow/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/cmd/commands.h"
#include "launcher/code/code.h"
#include "launcher/config/edit.h"
#include "launcher/config/hparams.h"
#include "launcher/config/resources.h"
#include "launcher/config/setting.h"
#include "launcher/config/software_settings.h"
#include "launcher/sys/alloc.h"
#include "launcher/sys/small_file.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

struct flow_checking {
    struct flow *f;
    const config_t *cf;
    struct flow_step *s; /* being checked */
    struct problems *p;
};

/* ---- links: the steps that a step waits for ---- */

/* Make a step wait for another one, unless it already does. */
static void flow_add_link (struct flow_step *s, size_t to, enum flow_wait wait)
{
    for (size_t i = 0; i < s->nlinks; i++)
        if (s->links[i].step == to)
            return;
    XGROW (s->links, s->nlinks);
    s->links[s->nlinks++] = (struct flow_link){ to, wait };
}

static struct origin flow_check_origin (const struct flow_checking *c, const char *where)
{
    config_setting_t *steps = config_lookup (c->cf, "steps");
    config_setting_t *step = config_setting_lookup (steps, c->s->name);
    const config_setting_t *s = config_setting_lookup (step, where);

    return s ? origin_of (s) : c->s->origin;
}

static const struct flow_step *flow_check_find (const struct flow_checking *c, const char *name,
                                                const char *where)
{
    const struct flow_step *to = flow_step_find (c->f, name);
    const char **words = to ? NULL : xcalloc (c->f->n + 1, sizeof (*words));
    const char *meant;

    for (size_t i = 0; words && i < c->f->n; i++)
        words[i] = c->f->steps[i].name;
    meant = words ? nearest_word (name, words) : NULL;
    if (!to)
        problem_at (c->p, flow_check_origin (c, where),
                    "step '%s': '%s' names the step '%s', which does not exist%s%s%s", c->s->name,
                    where, name, DID_YOU_MEAN (meant, "'", "'", ""));
    else if (to->on_exit && !c->s->on_exit)
        problem_at (c->p, flow_check_origin (c, where),
                    "step '%s': '%s' names '%s', which runs when all others have ended (on_exit)",
                    c->s->name, where, name);
    else if (to == c->s)
        problem_at (c->p, flow_check_origin (c, where),
                    "step '%s' waits for itself ('%s'); {out.NAME} is its own output", name, where);
    free (words);
    return to == c->s || (to && to->on_exit && !c->s->on_exit) ? NULL : to;
}

static json_t *parse_range (const char *text)
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

static void check_foreach_source (struct flow_checking *c, const char *name)
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
                    "'%s' must be among the 'values' of '%s', which must have no 'foreach'",
                    c->s->name, dot + 1, step);
    else if (c->s->on_exit)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': with on_exit 'foreach' must be a list", c->s->name);
    flow_add_link (c->s, flow_step_number (c->f, to), AFTER_OK);
    c->s->source = (long)flow_step_number (c->f, to);
    c->s->source_value = xstrdup (dot + 1);
}

static void flow_check_foreach (struct flow_checking *c)
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
        check_foreach_source (c, name);
        return;
    } else if (n && !text[n] && json_is_array (json_object_get (c->f->params, name)))
        s->items = json_incref (json_object_get (c->f->params, name));
    else if ((full = flow_with_params (c->f, text))) {
        s->items = parse_range (full);
        free (full);
    }
    if (!s->items)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': 'foreach' is '%s', but must be a list, a range "
                    "\"1..8\" or {name} of a list",
                    s->name, text);
    else if (json_array_size (s->items) == 0 || json_array_size (s->items) > FLOW_WIDTH_MAX)
        problem_at (c->p, flow_check_origin (c, "foreach"),
                    "step '%s': 'foreach' has %s elements, but must have 1 to %d", s->name,
                    json_array_size (s->items) ? "too many" : "no", FLOW_WIDTH_MAX);
}

static void flow_check_each (const struct flow_checking *c)
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
                        "step '%s': 'after_each' needs a 'foreach' as long as that of '%s'",
                        s->name, to->name);
    }
}

static bool any_has_name (char *const *list)
{
    while (list && *list && !flow_has_name (*list))
        list++;
    return list && *list;
}

/* Check the experiment file now, so that its mistakes do not show up after hours.  Its
 * hyperparameters become values that the step reports.
 */
static void flow_check_sweep (const struct flow_checking *c)
{
    struct flow_step *s = c->s;
    const struct edit edit = { .sets = s->set };
    const char *file = c->p->file;
    struct experiment *e;
    char path[PATH_MAX];

    if (!s->sweep || c->f->is_frozen || flow_has_name (s->sweep) || any_has_name (s->set)
        || !c->f->base->dir)
        return;
    path_from (path, c->f->base->dir, s->sweep);
    e = experiment_read_edited (path, &edit, c->p);
    if (e)
        command_check_files (e, c->p);
    c->p->file = file;
    for (size_t i = 0; e && i < e->space->nhparams; i++)
        strings_add (&s->values, e->space->hparams[i].path);
    experiment_destroy (e);
}

/* Look for the program in the folder of the flow file.  A frozen flow was checked when it was
 * created.
 */
static void flow_check_command (const struct flow_checking *c)
{
    struct experiment e = *c->s->exp;

    e.dir = c->f->base->dir;
    e.entrypoint_origin = flow_check_origin (c, "entrypoint");
    if (c->f->is_frozen)
        return;
    command_check_files (&e, c->p);
    experiment_check_gpus (&e, flow_check_origin (c, "resources"), c->p);
}

/* Check that inputs from outside the flow exist. */
static void flow_check_inputs (const struct flow_checking *c)
{
    char path[PATH_MAX];

    for (char **i = c->s->inputs; i && *i; i++) {
        char *text = flow_with_params (c->f, *i);
        path_from (path, c->f->base->dir, text ? text : "");
        if (text && !flow_has_name (text) && !c->f->is_frozen && access (path, R_OK) < 0)
            problem_at (c->p, flow_check_origin (c, "inputs"), "step '%s': the input %s: %s",
                        c->s->name, path, strerror (errno));
        free (text);
    }
}

static void check_step_output (const struct flow_checking *c, size_t step, size_t k)
{
    const struct flow *f = c->f;
    const struct flow_step *s = c->s;
    const char *path = s->outputs[k].path;
    struct origin origin = flow_check_origin (c, "outputs");

    if (*path == '/' && s->foreach && !strstr (path, "{item}") && !strstr (path, "{index}"))
        problem_at (c->p, origin,
                    "step '%s': all its tasks write '%s': put {item} or {index} into the path",
                    s->name, path);
    for (size_t i = 0; i <= step; i++)
        for (size_t j = 0; j < (i == step ? k : f->steps[i].noutputs); j++)
            if (!strcmp (f->steps[i].outputs[j].path, path) && (i == step || *path == '/'))
                problem_at (c->p, origin, "step '%s' and step '%s' write the same output, '%s'",
                            f->steps[i].name, s->name, path);
}

static void flow_check_outputs (struct flow_checking *c)
{
    struct flow *f = c->f;

    for (size_t i = 0; i < f->n; i++) {
        c->s = &f->steps[i];
        for (size_t k = 0; k < c->s->noutputs; k++) {
            struct flow_output *o = &c->s->outputs[k];
            char *path = flow_with_params (f, o->path);
            free (o->path);
            o->path = path;
            check_step_output (c, i, k);
        }
    }
}

static bool software_is_given (const struct software *s)
{
    return s->image || s->runtime || s->binds || s->options || s->modules || s->conda || s->venv;
}

const struct software *flow_software_of (const struct flow *f, const struct flow_step *s)
{
    static const struct software none;

    return s->sweep                               ? &none
           : software_is_given (s->exp->software) ? s->exp->software
                                                  : f->base->software;
}

static void check_step_software (struct flow *f, struct flow_step *s, const config_t *cf,
                                 struct problems *p)
{
    bool is_own = software_is_given (s->exp->software);
    struct software *from = is_own ? s->exp->software : f->base->software;
    struct experiment e = *s->exp;
    config_setting_t *group = config_root_setting (cf);

    if (s->sweep && is_own)
        problem_at (p, s->origin,
                    "step '%s': 'container' and 'environment' (modules, conda, "
                    "venv) of a sweep are keys of its experiment file, '%s': write them there",
                    s->name, s->sweep);
    if (s->sweep || !software_is_given (from))
        return;
    e.software = from;
    if (is_own)
        group = config_setting_lookup (config_lookup (cf, "steps"), s->name);
    software_settings_check (&e, group, p);
}

void flow_check_software (struct flow *f, const config_t *cf, struct problems *p)
{
    /* report a mistake that many steps share only once */
    for (size_t i = 0; i < f->n && p->count == 0; i++)
        check_step_software (f, &f->steps[i], cf, p);
}

static void find_software (const struct flow *f, const struct software *s, bool local, bool loads,
                           struct problems *p)
{
    struct software own = *s;
    struct experiment e = { .dir = f->base->dir, .software = &own };

    software_check (&e, local, loads, p);
    strings_free (own.activated);
}

void flow_find_software (const struct flow *f, bool local, bool loads, struct problems *p)
{
    bool is_used = false;

    for (size_t i = 0; i < f->n; i++) {
        const struct software *s = flow_software_of (f, &f->steps[i]);
        if (s == f->base->software)
            is_used = true;
        else
            find_software (f, s, local, loads, p);
    }
    if (is_used)
        find_software (f, f->base->software, local, loads, p);
}

json_t *flow_software_key (const struct flow *f, const struct flow_step *s)
{
    const struct software *w = flow_software_of (f, s);
    char *text = software_is_given (w) ? software_text (w, NULL, true) : NULL;
    char *image = w->image ? container_image (w, f->base->dir) : NULL;
    json_t *key = text ? json_pack ("{s:s}", "settings", text) : NULL;
    struct stat st;

    if (key && image && *image == '/' && stat (image, &st) == 0) {
        json_object_set_new (key, "bytes", json_integer (st.st_size));
        json_object_set_new (key, "modified", json_integer (st.st_mtime));
    }
    free (image);
    free (text);
    return key;
}

static bool step_is_ready (const struct flow *f, size_t step, const bool *placed, bool others)
{
    const struct flow_step *s = &f->steps[step];

    if (placed[step] || (s->on_exit && others))
        return false;
    for (size_t i = 0; i < s->nlinks; i++)
        if (!placed[s->links[i].step])
            return false;
    return true;
}

/* Report a cycle: from a step that could not be ordered, walk to one that it waits for, until a
 * step recurs.
 */
static void report_flow_cycle (const struct flow *f, struct problems *p, const bool *placed)
{
    size_t *seen = xcalloc (f->n + 1, sizeof (*seen));
    char *text = NULL;
    size_t size, at = 0, n = 0, first = 0;
    FILE *o = xopen_memstream (&text, &size);

    while (placed[at])
        at++;
    for (;; n++) {
        for (first = 0; first < n && seen[first] != at; first++)
            ;
        if (first < n)
            break;
        seen[n] = at;
        for (size_t i = 0; i < f->steps[at].nlinks; i++)
            if (!placed[f->steps[at].links[i].step]) {
                at = f->steps[at].links[i].step;
                break;
            }
    }
    for (size_t i = first; i < n; i++)
        fprintf (o, "'%s' waits for ", f->steps[seen[i]].name);
    fprintf (o, "'%s'", f->steps[at].name);
    xclose_memstream (o);
    problem_at (p, f->steps[at].origin, "a cycle: %s", text);
    free (text);
    free (seen);
}

static void flow_order (struct flow *f, struct problems *p)
{
    bool *placed = xcalloc (f->n + 1, sizeof (*placed));
    size_t n = 0, before, others = f->n;

    f->order = xcalloc (f->n + 1, sizeof (*f->order));
    for (size_t i = 0; i < f->n; i++)
        others -= f->steps[i].on_exit;
    do {
        before = n;
        for (size_t i = 0; i < f->n; i++)
            if (step_is_ready (f, i, placed, n < others)) {
                f->order[n++] = i;
                placed[i] = true;
            }
    } while (n > before);
    if (n < f->n)
        report_flow_cycle (f, p, placed);
    free (placed);
}

/* Names that texts can use besides parameters and steps. */
static const char *const flow_builtins[] = { "item",         "index",    "outcome",
                                             "failed_steps", "flow_dir", NULL };

static void add_named_links (struct flow_checking *c, char *const *names, const char *where,
                             enum flow_wait wait)
{
    for (; names && *names; names++) {
        const struct flow_step *to = flow_check_find (c, *names, where);
        if (to)
            flow_add_link (c->s, flow_step_number (c->f, to), wait);
    }
}

static void report_unknown_name (const struct flow_checking *c, const char *name, const char *where,
                                 const char *const *words, const char *whose)
{
    const char *meant = nearest_word (name, words);

    problem_at (c->p, flow_check_origin (c, where), "step '%s': '%s' has {%s}: %s%s%s%s",
                c->s->name, where, name, whose, DID_YOU_MEAN (meant, "'", "'", ""));
}

static void check_plain_name (const struct flow_checking *c, const char *name, const char *where)
{
    const char *words[96] = { 0 };
    const char *key;
    json_t *v;
    size_t n = 0;

    if (json_object_get (c->f->params, name) || strings_contain (flow_builtins, name)) {
        bool is_item = !strcmp (name, "item") || !strcmp (name, "index");
        bool is_end = !strcmp (name, "outcome") || !strcmp (name, "failed_steps");
        if (is_item && !c->s->foreach)
            report_unknown_name (c, name, where, words, "only a step with 'foreach' has it");
        else if (is_end && !c->s->on_exit)
            report_unknown_name (c, name, where, words, "only a step with 'on_exit' has it");
        return;
    }
    for (const char *const *b = flow_builtins; *b; b++)
        words[n++] = *b;
    json_object_foreach (c->f->params, key, v)
        if (n < sizeof (words) / sizeof (*words) - 1)
            words[n++] = key;
    report_unknown_name (c, name, where, words, "no parameter");
}

static int check_name_in_text (const char *name, const char *where, void *arg)
{
    struct flow_checking *c = arg;
    const char *dot = strchr (name, '.');
    const struct flow_step *to;
    char step[256];

    if (!dot) {
        check_plain_name (c, name, where);
        return 0;
    }
    snprintf (step, sizeof (step), "%.*s", (int)(dot - name), name);
    if (!strcmp (step, "out")) {
        for (size_t i = 0; i < c->s->noutputs; i++)
            if (!strcmp (c->s->outputs[i].name, dot + 1))
                return 0;
        report_unknown_name (c, name, where, (const char *const[]){ NULL }, "no such output");
        return 0;
    }
    if (!(to = flow_check_find (c, step, where)))
        return 0;
    if (!flow_step_has (to, dot + 1)) {
        char why[256];
        snprintf (why, sizeof (why),
                  "step '%s' has neither an output nor a value of that name (outputs, values)",
                  step);
        report_unknown_name (
            c, name, where,
            to->values ? (const char *const *)to->values : (const char *const[]){ NULL }, why);
    }
    flow_add_link (c->s, flow_step_number (c->f, to), c->s->on_exit ? AFTER_ANY : AFTER_OK);
    return 0;
}

static void report_wrong_step (const struct flow_checking *c, const char *where, const char *what)
{
    problem_at (c->p, flow_check_origin (c, where), "step '%s': %s", c->s->name, what);
}

/* No value is known yet.  A number fits into every condition. */
static char *stand_in_value (const char *name, void *arg, struct slurmdl_error *err)
{
    (void)name;
    (void)arg;
    (void)err;
    return xstrdup ("0");
}

static void check_step_keys (struct flow_checking *c)
{
    const struct flow_step *s = c->s;
    struct slurmdl_error why = { "" };
    bool holds;

    if (!s->exp->entrypoint && !s->exp->argv && !s->sweep)
        report_wrong_step (c, "", "'entrypoint' is missing (or 'sweep', an experiment file)");
    else if ((s->exp->entrypoint || s->exp->argv) && s->sweep)
        report_wrong_step (c, "sweep", "use only one of 'entrypoint' and 'sweep'");
    if (s->set && !s->sweep)
        report_wrong_step (c, "set", "'set' is for a 'sweep'");
    if (s->sweep && s->noutputs)
        report_wrong_step (c, "outputs",
                           "the outputs of a sweep are 'checkpoint', 'experiment', 'trial', "
                           "'metric' and its hyperparameters");
    if (s->when && flow_condition_holds (s->when, stand_in_value, NULL, &holds, &why) < 0)
        report_wrong_step (c, "when", why.text);
    if (s->on_exit && (s->after || s->after_any || s->after_each))
        report_wrong_step (c, "on_exit", "a step with on_exit comes after all others: no 'after'");
    if (!strcmp (s->name, "out") || strings_contain (flow_builtins, s->name)
        || json_object_get (c->f->params, s->name))
        report_wrong_step (c, "", "this name is reserved in {}: choose another one");
}

static void check_step_links (struct flow_checking *c)
{
    check_step_keys (c);
    flow_check_command (c);
    flow_check_inputs (c);
    add_named_links (c, c->s->after, "after", AFTER_OK);
    add_named_links (c, c->s->after_any, "after_any", AFTER_ANY);
    add_named_links (c, c->s->after_each, "after_each", AFTER_EACH);
    flow_check_foreach (c);
    flow_each_name (c->s, check_name_in_text, c);
}

void flow_check (struct flow *f, const config_t *cf, struct problems *p)
{
    struct flow_checking c = { f, cf, NULL, p };

    for (const char *const *b = flow_builtins; *b; b++)
        if (json_object_get (f->params, *b))
            problem_at (p, origin_of_key (cf, "parameters"),
                        "'%s' cannot be the name of a parameter", *b);
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        flow_check_sweep (&c);
    }
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        check_step_links (&c);
    }
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        flow_check_each (&c);
    }
    flow_check_outputs (&c);
    if (p->count == 0)
        flow_order (f, p);
}
