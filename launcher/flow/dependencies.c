/* SPDX-License-Identifier: Apache-2.0 */
/* The links of a step: those for which it waits. */
#include <stdlib.h>

#include "launcher/config/option_origin.h"
#include "launcher/flow/check.h"
#include "runtime/base/array.h"
#include "runtime/base/nearest_word.h"

void flow_add_link (struct flow_step *s, size_t to, enum flow_wait wait)
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

struct origin flow_check_origin (const struct flow_checking *c, const char *where)
{
    config_setting_t *steps = config_lookup (c->cf, "steps");
    config_setting_t *step = config_setting_lookup (steps, c->s->name);
    const config_setting_t *s = config_setting_lookup (step, where);

    return s ? origin_of (s) : c->s->origin;
}

const struct flow_step *flow_check_find (const struct flow_checking *c, const char *name,
                                         const char *where)
{
    const struct flow_step *to = flow_step_find (c->f, name);
    const char **words = to ? NULL : calloc (c->f->n + 1, sizeof (*words));
    const char *meant;

    for (size_t i = 0; words && i < c->f->n; i++)
        words[i] = c->f->steps[i].name;
    meant = words ? nearest_word (name, words) : NULL;
    if (!to)
        problem_at (c->p, flow_check_origin (c, where),
                    "step '%s': '%s' names the step '%s', which is not "
                    "there%s%s%s",
                    c->s->name, where, name, DID_YOU_MEAN (meant, "'", "'", ""));
    else if (to->on_exit && !c->s->on_exit)
        problem_at (c->p, flow_check_origin (c, where),
                    "step '%s': '%s' names '%s', which runs when all others "
                    "have ended (on_exit)",
                    c->s->name, where, name);
    else if (to == c->s)
        problem_at (c->p, flow_check_origin (c, where),
                    "step '%s' waits for itself ('%s'); {out.NAME} is its own "
                    "output",
                    name, where);
    free (words);
    return to == c->s || (to && to->on_exit && !c->s->on_exit) ? NULL : to;
}
