/* SPDX-License-Identifier: Apache-2.0 */
/* Validate the configuration of a search. */
#include "searcher/samplers/samplers.h"
#include "searcher/schedulers/schedulers.h"
#include "searcher/search/build.h"
#include "searcher/search/kinds.h"
#include "searcher/state/state.h"

static const char *check_trials (const struct search_config *config, int needs)
{
    if (config->max_trials > TRIALS_MAX)
        return "max_trials is above 10000000";
    if (needs & NEED_MAX_TRIALS && config->max_trials < 1)
        return "max_trials is below 1";
    if (needs & CAN_MAX_TRIALS && config->max_trials < 0)
        return "max_trials is negative";
    return NULL;
}

static const char *check_search_numbers (const struct search_config *config)
{
    if (config->max_length < 1)
        return "max_length is below 1";
    if (config->max_length > LENGTH_MAX)
        return "max_length is above 2^53";
    if (config->max_concurrent < 0)
        return "max_concurrent is negative";
    if (config->repeats < 0 || config->repeats > 64)
        return "repeats is not 0 to 64";
    if (!(config->max_seconds >= 0))
        return "max_seconds is below 0";
    if (config->min_length < 0)
        return "min_length is negative";
    if (config->population < 0 || config->population > 100000)
        return "population is not 0 to 100000";
    if (config->npoints < 0 || config->nknown < 0 || config->npoints + config->nknown > TRIALS_MAX)
        return "too many points";
    return NULL;
}

static const char *check_objectives (const struct search_config *config,
                                     const struct searcher_kind *kind)
{
    if (config->objectives < 0 || config->objectives > OBJECTIVES_MAX)
        return "there can be 1 to 8 objectives";
    if (config->objectives > 1 && !(kind->needs & HAS_OBJECTIVES))
        return "this searcher takes one metric only; auto, random, sobol, lhs, tpe, "
               "gp and nsga2 take several";
    if (config->objectives > 1 && config->max_length > 1 && kind->needs & HAS_RUNGS)
        return "several metrics need full trainings: max_length must be 1";
    return NULL;
}

static const char *check_sampler (const struct search_config *config,
                                  const struct searcher_kind *kind)
{
    const struct searcher_kind *sampler = kind_find (config->sampler);

    if (!config->sampler)
        return NULL;
    if (!sampler)
        return "unknown sampler";
    if (sampler->scheduler != &schedule_full && sampler != searcher_kinds)
        return "the sampler must be a searcher of full trainings";
    if (!(kind->needs & (NEED_MAX_TRIALS | CAN_MAX_TRIALS)))
        return "this searcher has a sampler of its own";
    if (config->objectives > 1 && !(sampler->needs & HAS_OBJECTIVES))
        return "the sampler takes one metric only";
    return NULL;
}

static const char *check_repeats (const struct search_config *config,
                                  const struct searcher_kind *kind)
{
    if (config->repeats <= 1)
        return NULL;
    if (kind->needs & HAS_REPORTS || kind->scheduler->clone)
        return "this searcher cannot repeat a trial";
    return NULL;
}

static const char *check_config (const struct search_config *config)
{
    const struct searcher_kind *kind = kind_find (config->name);
    const char *why;

    if (!kind)
        return "unknown searcher";
    if ((why = check_search_numbers (config)) || (why = check_objectives (config, kind))
        || (why = check_sampler (config, kind)) || (why = check_repeats (config, kind)))
        return why;
    return check_trials (config, kind->needs);
}

static const char *check_points (const struct search_request *request,
                                 const struct search_scheduler *schedule)
{
    const struct search_config *config = request->config;
    struct searcher *s = NULL;
    const char *why = NULL;

    if (!config->constraint && !config->npoints && !config->nknown)
        return NULL;
    /* the point of a single trial may be given by the user */
    if (config->npoints && schedule->fixed && (schedule != &schedule_single || config->npoints > 1))
        return "this searcher has points of its own";
    if (!(s = search_build (request)))
        return "out of memory";
    if (config->constraint && schedule != &schedule_grid && !point_possible (s))
        why = "fewer than 10 of 20000 random points satisfy the constraint";
    for (long i = 0; !why && i < config->npoints; i++)
        if (!point_fits (s, config->points + i * s->n))
            why = "a point to try first is not in the space";
        else if (!point_allowed (s, config->points + i * s->n))
            why = "the constraint forbids a point to try first";
    for (long i = 0; !why && i < config->nknown; i++)
        if (!point_fits (s, config->known[i].x))
            why = "a known point is not in the space";
    searcher_destroy (s);
    return why;
}

const char *searcher_check (const struct search_config *config, const struct param *params,
                            size_t n, struct search_mistake *where)
{
    const struct search_request request = { config, params, n };
    const struct search_scheduler *schedule;
    const struct search_sampler *sampler;
    struct search_mistake unused;
    struct constraint c;
    const char *why;

    where = where ? where : &unused;
    *where = (struct search_mistake){ .param = -1 };
    if ((why = check_config (config)) || (why = space_check (params, n, &where->param)))
        return why;
    if (config->constraint && (why = plan_constraint (&request, &c, &where->column)))
        return why;
    schedule = kind_find (config->name)->scheduler;
    sampler = kind_sampler (config);
    if (schedule->check && (why = schedule->check (&request, &where->param)))
        return why;
    if (sampler->check && (why = sampler->check (&request, &where->param)))
        return why;
    where->param = -1;
    return check_points (&request, schedule);
}
