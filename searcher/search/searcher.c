/* SPDX-License-Identifier: Apache-2.0 */
/* Create a search from its configuration, and preview what it will cost. */
#include "searcher/searcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/numeric/rng.h"
#include "searcher/search/build.h"
#include "searcher/search/kinds.h"

int searcher_preview (const struct search_config *config, const struct param *params, size_t n,
                      struct search_rung *rungs, size_t max)
{
    const struct search_request request = { config, params, n };
    int64_t trials[RUNGS_MAX + 1];
    struct search_plan plan;
    int rv;

    if (searcher_check (config, params, n, NULL)) {
        errno = EINVAL;
        return -1;
    }
    if (!search_plan (&request, &plan))
        return -1;
    for (int i = 0; i < plan.rungs && (size_t)i < max; i++)
        rungs[i] = (struct search_rung){ plan.length[i], 0 };
    for (int k = 0; k < plan.brackets; k++) {
        search_expect (&plan, plan.bracket + k, trials);
        for (int i = plan.bracket[k].first; i < plan.rungs; i++)
            if ((size_t)i < max)
                rungs[i].trials +=
                    (trials[i] - trials[i + 1]) * (config->repeats > 1 ? config->repeats : 1);
    }
    rv = plan.rungs;
    free (plan.bracket);
    return rv;
}

static void fill_known (struct searcher *s, const struct search_config *config)
{
    for (int64_t i = 0; i < s->known; i++) {
        const struct search_known *k = config->known + i;
        double *values = searcher_values (s, -i);
        bool bad = false;
        memcpy (searcher_point (s, -i), k->x, s->n * sizeof (double));
        for (int64_t j = 0; j < s->width; j++)
            values[j] = NAN;
        for (int64_t j = 0; j < s->objectives; j++)
            bad = bad || !isfinite (k->values[j]);
        for (int64_t j = 0; j < s->objectives; j++)
            values[s->objectives > 1 ? j : s->rungs - 1] =
                bad ? INFINITY : searcher_objective (s, j, k->values[j]);
    }
    for (int64_t i = 0; i < s->points; i++)
        memcpy ((double *)searcher_at (s, s->at_first) + i * s->n, config->points + i * s->n,
                s->n * sizeof (double));
}

struct searcher *searcher_create (const struct search_config *config, const struct param *params,
                                  size_t n)
{
    const struct search_request request = { config, params, n };
    struct searcher *s;

    if (searcher_check (config, params, n, NULL)) {
        errno = EINVAL;
        return NULL;
    }
    if (!(s = search_build (&request)))
        return NULL;
    fill_known (s, config);
    if (searcher_schedule (s)->start)
        searcher_schedule (s)->start (s, &request);
    if (searcher_sampler (s)->start)
        searcher_sampler (s)->start (s);
    return s;
}

struct searcher *searcher_copy (const struct searcher *s)
{
    struct searcher *copy = malloc (s->size);

    return copy ? memcpy (copy, s, s->size) : NULL;
}

size_t searcher_size (const struct searcher *s)
{
    return s->size;
}

double searcher_progress (const struct searcher *s)
{
    return s->progress;
}

uint32_t searcher_trial_seed (uint64_t seed, long trial)
{
    return rng_bits (seed, trial, rng_key ("trial seed"), 1) >> 33;
}
