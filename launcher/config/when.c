/* SPDX-License-Identifier: Apache-2.0 */
/* Read for which values a hyperparameter is active, and its default. */
#include "launcher/config/when.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/config/experiment.h"
#include "launcher/config/option_origin.h"
#include "launcher/config/reading.h"
#include "launcher/config/space.h"
#include "launcher/config/values.h"

enum { WHERE_SIZE = 192, PATH_SIZE = 128 };

/* The member KEY of the hyperparameter 'h'; 'where' names it. */
static config_setting_t *member (config_setting_t *group, const struct hparam *h, const char *key,
                                 char *where)
{
    char path[WHERE_SIZE];

    snprintf (where, WHERE_SIZE, "hyperparameter '%.*s': '%s'", PATH_SIZE, h->path, key);
    snprintf (path, sizeof (path), "%s.%s", h->path, key);
    return h->dim >= 0 ? config_setting_lookup (group, path) : NULL;
}

/* Walk down from { optimizer = { name = "sgd" } } to the "sgd".  Returns NULL
 * after a problem.
 */
static const config_setting_t *find_other (const struct experiment *e, const config_setting_t *s,
                                           const char *where, const struct hparam **other,
                                           struct problems *p)
{
    char path[PATH_SIZE] = "";
    size_t n = 0;

    while (config_setting_is_group (s) && config_setting_length (s) == 1) {
        s = config_setting_get_elem (s, 0);
        n += (size_t)snprintf (path + n, sizeof (path) - n, "%s%s", n ? "." : "",
                               config_setting_name (s));
        if (n >= sizeof (path))
            break;
        if ((*other = hparam_find (e, path)))
            return s;
        if (!config_setting_is_group (s)) {
            hparam_unknown (e, s, where, path, p);
            return NULL;
        }
    }
    problem_at (p, origin_of (s),
                "%s must be { name = value; }: one other hyperparameter, "
                "and the value or values for which this one is active",
                where);
    return NULL;
}

/* One value, or a list of them; a choice may be a list itself. */
static bool is_one_value (const struct experiment *e, const struct hparam *other,
                          const config_setting_t *s)
{
    json_t *v = setting_json (s);
    double x;
    bool one = (!config_setting_is_list (s) && !config_setting_is_array (s))
               || json_value (e, other, v, &x) == 0;

    json_decref (v);
    return one;
}

static void read_when (struct experiment *e, struct hparam *h, const config_setting_t *s,
                       const char *where, struct problems *p)
{
    const struct hparam *other = NULL;
    struct param *d = &e->space->params[h->dim];
    bool one;
    int n;

    if (!(s = find_other (e, s, where, &other, p)))
        return;
    if (other->dim < 0) {
        problem_at (p, origin_of (s), "%s: '%s' is a constant; name one that is searched", where,
                    other->path);
        return;
    }
    one = is_one_value (e, other, s);
    n = one ? 1 : config_setting_length (s);
    if (!(h->when_values = calloc ((size_t)n + 1, sizeof (double))))
        return;
    for (int i = 0; i < n; i++)
        setting_value (e, other, one ? s : config_setting_get_elem (s, (unsigned)i), where,
                       h->when_values + i, p);
    d->when = other->path;
    d->when_values = h->when_values;
    d->when_count = n;
}

void when_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    char where[WHERE_SIZE];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        const config_setting_t *s = member (group, h, "when", where);
        if (s)
            read_when (e, h, s, where, p);
    }
}

void presets_read (struct experiment *e, config_setting_t *group, struct problems *p)
{
    char where[WHERE_SIZE];

    for (size_t i = 0; i < e->space->nhparams; i++) {
        struct hparam *h = &e->space->hparams[i];
        const config_setting_t *s = member (group, h, "default", where);
        if (s && setting_value (e, h, s, where, &h->preset, p) < 0)
            h->preset = NAN;
    }
}
