/* SPDX-License-Identifier: Apache-2.0 */
/* Which steps of a flow wait for which, and what cannot be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/option_origin.h"
#include "launcher/flow/check.h"
#include "launcher/sys/strings.h"
#include "runtime/base/nearest_word.h"

/* What the texts of a step may name besides parameters and steps. */
static const char *const builtins[] = {
    "item", "index", "outcome", "failed_steps", "flow_dir", NULL
};

static void add_links (struct flow_checking *c, char *const *names, const char *where,
                       enum flow_wait wait)
{
    for (; names && *names; names++) {
        const struct flow_step *to = flow_check_find (c, *names, where);
        if (to)
            flow_add_link (c->s, flow_step_number (c->f, to), wait);
    }
}

static void unknown_name (const struct flow_checking *c, const char *name, const char *where,
                          const char *const *words, const char *whose)
{
    const char *meant = nearest_word (name, words);

    problem_at (c->p, flow_check_origin (c, where), "step '%s': '%s' has {%s}: %s%s%s%s",
                c->s->name, where, name, whose, DID_YOU_MEAN (meant, "'", "'", ""));
}

static void check_plain (const struct flow_checking *c, const char *name, const char *where)
{
    const char *words[96] = { 0 };
    const char *key;
    json_t *v;
    size_t n = 0;

    if (json_object_get (c->f->params, name) || strings_contain (builtins, name)) {
        bool is_item = !strcmp (name, "item") || !strcmp (name, "index");
        bool is_end = !strcmp (name, "outcome") || !strcmp (name, "failed_steps");
        if (is_item && !c->s->foreach)
            unknown_name (c, name, where, words, "only a step with 'foreach' has it");
        else if (is_end && !c->s->on_exit)
            unknown_name (c, name, where, words, "only a step with 'on_exit' has it");
        return;
    }
    for (const char *const *b = builtins; *b; b++)
        words[n++] = *b;
    json_object_foreach (c->f->params, key, v)
        if (n < sizeof (words) / sizeof (*words) - 1)
            words[n++] = key;
    unknown_name (c, name, where, words, "no parameter");
}

static int check_name (const char *name, const char *where, void *arg)
{
    struct flow_checking *c = arg;
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
        unknown_name (c, name, where, (const char *const[]){ NULL }, "no such output");
        return 0;
    }
    if (!(to = flow_check_find (c, step, where)))
        return 0;
    if (!flow_step_has (to, dot + 1)) {
        char why[256];
        snprintf (why, sizeof (why),
                  "step '%s' has neither an output nor a value of that name "
                  "(outputs, values)",
                  step);
        unknown_name (c, name, where,
                      to->values ? (const char *const *)to->values : (const char *const[]){ NULL },
                      why);
    }
    flow_add_link (c->s, flow_step_number (c->f, to), c->s->on_exit ? AFTER_ANY : AFTER_OK);
    return 0;
}

static void wrong (const struct flow_checking *c, const char *where, const char *what)
{
    problem_at (c->p, flow_check_origin (c, where), "step '%s': %s", c->s->name, what);
}

/* Values are not known yet: as numbers they fit everywhere. */
static char *any_value (const char *name, void *arg, struct slurmdl_error *err)
{
    (void)name;
    (void)arg;
    (void)err;
    return strdup ("0");
}

static void check_step (struct flow_checking *c)
{
    const struct flow_step *s = c->s;
    struct slurmdl_error why = { "" };

    if (!s->exp.entrypoint && !s->exp.argv && !s->sweep)
        wrong (c, "", "'entrypoint' is missing (or 'sweep', an experiment file)");
    else if ((s->exp.entrypoint || s->exp.argv) && s->sweep)
        wrong (c, "sweep", "it has an 'entrypoint' and a 'sweep': one of them");
    if (s->set && !s->sweep)
        wrong (c, "set", "'set' is for a 'sweep'");
    if (s->sweep && s->noutputs)
        wrong (c, "outputs",
               "the outputs of a sweep are 'checkpoint', 'experiment', 'trial', "
               "'metric' and its hyperparameters");
    if (s->when && flow_condition_holds (s->when, any_value, NULL, &why) < 0)
        wrong (c, "when", why.text);
    if (s->on_exit && (s->after || s->after_any || s->after_each))
        wrong (c, "on_exit", "a step with on_exit comes after all others: no 'after'");
    if (!strcmp (s->name, "out") || strings_contain (builtins, s->name)
        || json_object_get (c->f->params, s->name))
        wrong (c, "", "this name means something else in {}: take another one");
}

static void check_links (struct flow_checking *c)
{
    check_step (c);
    flow_check_command (c);
    flow_check_inputs (c);
    add_links (c, c->s->after, "after", AFTER_OK);
    add_links (c, c->s->after_any, "after_any", AFTER_ANY);
    add_links (c, c->s->after_each, "after_each", AFTER_EACH);
    flow_check_foreach (c);
    flow_each_name (c->s, check_name, c);
}

void flow_check (struct flow *f, const config_t *cf, struct problems *p)
{
    struct flow_checking c = { f, cf, NULL, p };

    for (const char *const *b = builtins; *b; b++)
        if (json_object_get (f->params, *b))
            problem_at (p, origin_of_key (cf, "parameters"), "no parameter can have the name '%s'",
                        *b);
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        flow_check_sweep (&c);
    }
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        check_links (&c);
    }
    for (size_t i = 0; i < f->n; i++) {
        c.s = &f->steps[i];
        flow_check_each (&c);
    }
    flow_check_outputs (&c);
    if (p->count == 0)
        flow_order (f, p);
}
