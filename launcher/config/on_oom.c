/* SPDX-License-Identifier: Apache-2.0 */
/* Hyperparameters that are halved where the memory of a GPU is too small. */
#include "launcher/config/on_oom.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/space.h"

enum { PATH_SIZE = 192 };

static bool has_only_numbers (const json_t *values)
{
    for (size_t i = 0; i < json_array_size (values); i++)
        if (!json_is_number (json_array_get (values, i)))
            return false;
    return true;
}

static const char *why_not (const struct experiment *e, const struct hparam *h,
                            const config_setting_t *s)
{
    const char *text = config_setting_get_string (s);

    if (!text || strcmp (text, "halve"))
        return "must be \"halve\"";
    if (h->values && !has_only_numbers (h->values))
        return "needs numbers in 'vals'";
    return e->space->params[h->dim].type != PARAM_CATEGORICAL && !(e->space->params[h->dim].max > 0)
                   && e->space->params[h->dim].type != PARAM_LOG
               ? "needs values above 0"
               : NULL;
}

void on_oom_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    char path[PATH_SIZE];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        const config_setting_t *s;
        const char *why;
        snprintf (path, sizeof (path), "%s.on_oom", h->path);
        if (h->dim < 0 || !(s = config_setting_lookup (group, path)))
            continue;
        if ((why = why_not (e, h, s)))
            problem_at (p, origin_of (s), "hyperparameter '%s': 'on_oom' %s", h->path, why);
        h->halves = !why;
    }
}

/* The greatest choice that is above 0 and at most half of this one. */
static double half_choice (const struct hparam *h, double x)
{
    double limit = json_number_value (json_array_get (h->values, (size_t)x)) / 2;
    double best = 0;
    double found = NAN;

    for (size_t i = 0; i < json_array_size (h->values); i++) {
        double value = json_number_value (json_array_get (h->values, i));
        if (value <= limit && value > best) {
            best = value;
            found = (double)i;
        }
    }
    return found;
}

const struct hparam *on_oom_halve (const struct experiment *e, double *x)
{
    for (size_t i = 0; i < e->space->nhparams; i++) {
        const struct hparam *h = &e->space->hparams[i];
        double half;
        if (!h->halves || isnan (x[h->dim]))
            continue;
        half = h->values ? half_choice (h, x[h->dim])
                         : searcher_half (&e->space->params[h->dim], x[h->dim]);
        if (isfinite (half)) {
            x[h->dim] = half;
            return h;
        }
    }
    return NULL;
}
