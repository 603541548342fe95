/* SPDX-License-Identifier: Apache-2.0 */
/* Trained points of an earlier experiment that a search knows from its start.
 */
#include "launcher/config/known_points.h"

#include <stdlib.h>

#include "launcher/config/experiment.h"
#include "launcher/config/metric_settings.h"
#include "launcher/config/search_settings.h"
#include "launcher/config/space.h"
#include "launcher/sys/json_number.h"

void known_points_free (struct experiment *e)
{
    free (e->search->known);
    free (e->search->known_numbers);
    e->search->known = NULL;
    e->search->known_numbers = NULL;
    e->search->config.known = NULL;
    e->search->config.nknown = 0;
}

int known_points_allocate (struct experiment *e, size_t n)
{
    size_t width = e->space->nparams + e->metric->n;

    known_points_free (e);
    e->search->known = calloc (n + 1, sizeof (*e->search->known));
    e->search->known_numbers = calloc (n * width + 1, sizeof (*e->search->known_numbers));
    if (!e->search->known || !e->search->known_numbers)
        return -1;
    for (size_t i = 0; i < n; i++) {
        e->search->known[i].x = e->search->known_numbers + i * width;
        e->search->known[i].values = e->search->known[i].x + e->space->nparams;
    }
    e->search->config.known = e->search->known;
    return 0;
}

json_t *known_points_json (const struct experiment *e)
{
    json_t *list = json_array ();

    for (long i = 0; i < e->search->config.nknown; i++) {
        const struct search_known *k = &e->search->known[i];
        json_t *metric = e->metric->n > 1 ? numbers_to_json (k->values, e->metric->n)
                                          : number_to_json (k->values[0]);
        json_array_append_new (list, json_pack ("{s:o, s:o}", "x",
                                                numbers_to_json (k->x, e->space->nparams), "metric",
                                                metric));
    }
    return list;
}

int known_points_read (struct experiment *e, const json_t *known)
{
    size_t n = json_array_size (known);

    if (n == 0)
        return 0;
    if (known_points_allocate (e, n) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        const json_t *k = json_array_get (known, i);
        const json_t *x = json_object_get (k, "x");
        const json_t *metric = json_object_get (k, "metric");
        double *row = e->search->known_numbers + i * (e->space->nparams + e->metric->n);
        for (size_t j = 0; j < e->space->nparams; j++)
            *row++ = number_from_json (json_array_get (x, j));
        for (size_t j = 0; j < e->metric->n; j++)
            *row++ =
                number_from_json (json_is_array (metric) ? json_array_get (metric, j) : metric);
    }
    e->search->config.nknown = (long)n;
    return 0;
}
