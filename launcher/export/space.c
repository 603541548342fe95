/* SPDX-License-Identifier: Apache-2.0 */
/* The space of a search as JSON. */
#include "launcher/export/space.h"

#include <math.h>
#include <stdbool.h>

static json_t *choices_json (const struct hparam *h)
{
    return json_pack ("{s:s, s:s, s:O}",
                      "name",
                      h->path,
                      "type",
                      "categorical",
                      "choices",
                      h->values);
}

static json_t *range_json (const struct hparam *h, const struct param *p)
{
    bool exponents = p->type == PARAM_LOG;

    return json_pack ("{s:s, s:s, s:f, s:f, s:b, s:f}",
                      "name",
                      h->path,
                      "type",
                      p->type == PARAM_INT ? "int" : "float",
                      "low",
                      exponents ? pow (p->base, p->min) : p->min,
                      "high",
                      exponents ? pow (p->base, p->max) : p->max,
                      "log",
                      (int)(exponents || (p->type == PARAM_INT && p->base > 1)),
                      "step",
                      p->step);
}

json_t *space_json (const struct experiment *e)
{
    json_t *list = json_array ();

    for (size_t i = 0; i < e->nhparams; i++) {
        const struct hparam *h = &e->hparams[i];
        const struct param *p = h->dim < 0 ? NULL : &e->params[h->dim];
        if (p)
            json_array_append_new (list,
                                   p->type == PARAM_CATEGORICAL
                                       ? choices_json (h)
                                       : range_json (h, p));
    }
    return list;
}
