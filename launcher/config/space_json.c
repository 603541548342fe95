/* SPDX-License-Identifier: Apache-2.0 */
/* The search space of an experiment as JSON. */
#include "launcher/config/space_json.h"

#include <math.h>

#include "launcher/config/experiment.h"
#include "launcher/config/space.h"
#include "launcher/config/values.h"

static json_t *when_json (const struct experiment *e, const struct param *d)
{
    const struct hparam *other = hparam_find (e, d->when);
    json_t *values = json_array ();

    for (long i = 0; i < d->when_count; i++)
        json_array_append_new (
            values, e->space->params[other->dim].type == PARAM_CATEGORICAL
                        ? json_incref (json_array_get (other->values, (size_t)d->when_values[i]))
                        : json_real (d->when_values[i]));
    return json_pack ("{s:o}", d->when, values);
}

static json_t *bound_json (const struct param *d, double v)
{
    return d->type == PARAM_INT   ? json_integer ((json_int_t)v)
           : d->type == PARAM_LOG ? json_real (pow (d->base, v))
                                  : json_real (v);
}

static json_t *param_json (const struct experiment *e, const struct hparam *h)
{
    static const char *const types[] = { "float", "int", "float", "categorical" };
    const struct param *d = &e->space->params[h->dim];
    json_t *o = json_pack ("{s:s, s:s}", "name", h->path, "type", types[d->type]);

    if (d->type == PARAM_CATEGORICAL)
        json_object_set (o, "choices", h->values);
    else {
        json_object_set_new (o, "low", bound_json (d, d->min));
        json_object_set_new (o, "high", bound_json (d, d->max));
    }
    if (d->type == PARAM_LOG || d->base > 1)
        json_object_set_new (o, "log", json_true ());
    if (d->step > 0)
        json_object_set_new (o, "step", json_real (d->step));
    if (d->deviation > 0) {
        json_object_set_new (o, "mean",
                             json_real (d->type == PARAM_LOG ? pow (d->base, d->mean) : d->mean));
        json_object_set_new (
            o, "deviation",
            json_real (d->type == PARAM_LOG ? d->deviation * log10 (d->base) : d->deviation));
    }
    if (d->when)
        json_object_set_new (o, "when", when_json (e, d));
    return o;
}

json_t *space_json (const struct experiment *e)
{
    json_t *space = json_array ();

    for (size_t i = 0; i < e->space->nhparams; i++)
        if (e->space->hparams[i].dim >= 0)
            json_array_append_new (space, param_json (e, &e->space->hparams[i]));
    return space;
}
