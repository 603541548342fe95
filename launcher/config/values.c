/* SPDX-License-Identifier: Apache-2.0 */
/* Values of hyperparameters, as users write them. */
#include "launcher/config/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/hparams.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/config/space.h"
#include "runtime/base/nearest_word.h"

char *json_text (const json_t *v)
{
    json_t *one = json_pack ("{s:O}", "v", v);
    char *text = one ? hparams_text (one, "v") : NULL;

    json_decref (one);
    return text;
}

struct hparam *hparam_find (const struct experiment *e, const char *path)
{
    for (size_t i = 0; i < e->space->nhparams; i++)
        if (!strcmp (e->space->hparams[i].path, path))
            return &e->space->hparams[i];
    return NULL;
}

/* The nearest path, or one whose last part is the same. */
static const char *path_meant (const struct experiment *e, const char *path)
{
    const char **words = calloc (e->space->nhparams + 1, sizeof (*words));
    const char *last = strrchr (path, '.') ? strrchr (path, '.') + 1 : path;
    const char *meant = NULL;

    for (size_t i = 0; words && i < e->space->nhparams; i++) {
        const char *dot = strrchr (e->space->hparams[i].path, '.');
        words[i] = e->space->hparams[i].path;
        if (dot && !strcmp (dot + 1, last))
            meant = words[i];
    }
    if (words && !meant)
        meant = nearest_word (path, words);
    free (words);
    return meant;
}

void hparam_unknown (const struct experiment *e, const config_setting_t *s, const char *where,
                     const char *path, struct problems *p)
{
    const char *meant = path_meant (e, path);

    problem_at (p, origin_of (s), "%s: '%s' is not a hyperparameter%s%s%s", where, path,
                DID_YOU_MEAN (meant, "'", "'", ""));
}

/* The searcher's own opinion, asked with this parameter alone.  It has no
 * sharp bounds for PARAM_LOG, where the value is what pow() makes of it.
 */
static bool in_range (const struct param *d, double x)
{
    struct param alone = *d;
    struct search_config config = {
        .name = "random", .max_trials = 1, .max_length = 1, .points = &x, .npoints = 1
    };
    int at;

    alone.when = NULL;
    if (d->type == PARAM_LOG
        && !(x >= pow (d->base, d->min) * (1 - 1e-9) && x <= pow (d->base, d->max) * (1 + 1e-9)))
        return false;
    return !searcher_check (&config, &alone, 1, &at);
}

int json_value (const struct experiment *e, const struct hparam *h, const json_t *v, double *x)
{
    const struct param *d = &e->space->params[h->dim];
    char *text;

    if (d->type != PARAM_CATEGORICAL) {
        *x = json_number_value (v);
        return json_is_number (v) && in_range (d, *x) ? 0 : -1;
    }
    if (!(text = json_text (v)))
        return -1;
    for (*x = 0; *x < d->choices; ++*x)
        if (!strcmp (h->labels[(long)*x], text))
            break;
    free (text);
    return *x < d->choices ? 0 : -1;
}

/* What would be one: "; it has sgd, adam", " (from 0.001 to 1)". */
static void describe (const struct experiment *e, const struct hparam *h, const char *text,
                      char *buf, size_t size)
{
    const struct param *d = &e->space->params[h->dim];
    const char *meant;
    bool is_log = d->type == PARAM_LOG;

    if (d->type != PARAM_CATEGORICAL) {
        size_t n = (size_t)snprintf (buf, size, ": it has numbers from %.9g to %.9g",
                                     is_log ? pow (d->base, d->min) : d->min,
                                     is_log ? pow (d->base, d->max) : d->max);
        if (d->step > 0 && n < size)
            snprintf (buf + n, size - n, " in steps of %.9g", d->step);
        return;
    }
    meant = nearest_word (text, (const char *const *)h->labels);
    snprintf (buf, size, meant ? "; did you mean \"%s\"?" : ": its first is \"%s\"",
              meant          ? meant
              : h->labels[0] ? h->labels[0]
                             : "");
}

int setting_value (const struct experiment *e, const struct hparam *h, const config_setting_t *s,
                   const char *where, double *x, struct problems *p)
{
    json_t *v = setting_json (s);
    char hint[160];
    char *text;

    if (json_value (e, h, v, x) == 0) {
        json_decref (v);
        return 0;
    }
    text = json_text (v);
    describe (e, h, text ? text : "", hint, sizeof (hint));
    free (text);
    text = json_is_string (v) ? json_dumps (v, JSON_ENCODE_ANY) : json_text (v);
    json_decref (v);
    problem_at (p, origin_of (s), "%s: %s is not a value of '%s'%s", where, text ? text : "this",
                h->path, hint);
    free (text);
    return -1;
}
