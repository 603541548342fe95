/* SPDX-License-Identifier: Apache-2.0 */
/* Search a space of hyperparameters by ask and tell. */
#include "searcher/searcher.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/rng.h"
#include "searcher/state.h"

/* clang-format off */
const struct searcher_kind searcher_kinds[] = {
    { "single",
      "one trial: first choices, and the middle of each range",
      0, &searcher_single },
    { "grid",
      "a trial for each point of a grid",
      NEED_GRID_COUNT, &searcher_grid },
    { "random",
      "max_trials random points, each trained in full",
      NEED_MAX_TRIALS, &searcher_random },
    { "sobol",
      "max_trials points of a scrambled Sobol sequence",
      NEED_MAX_TRIALS, &searcher_sobol },
    { "lhs",
      "max_trials points of a Latin hypercube",
      NEED_MAX_TRIALS, &searcher_lhs },
    { "tpe",
      "tree-structured Parzen estimator: points like the best ones so far",
      NEED_MAX_TRIALS, &searcher_tpe },
    { "gp",
      "Bayesian optimisation: a Gaussian process, expected improvement",
      NEED_MAX_TRIALS, &searcher_gp },
    { "asha",
      "random points, the best of which are trained on, rung by rung",
      NEED_MAX_TRIALS, &searcher_asha },
    { "adaptive_asha",
      "several asha searches that stop trials more and less early",
      NEED_MAX_TRIALS, &searcher_adaptive_asha },
    { NULL, NULL, 0, NULL },
};
/* clang-format on */

static const int64_t length_max = INT64_C (1) << 53;

static const struct searcher_kind *find_kind (const char *name)
{
    for (const struct searcher_kind *k = searcher_kinds; name && k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

static const char *check_config (const struct search_config *config)
{
    const struct searcher_kind *kind = find_kind (config->name);

    if (!kind)
        return "unknown searcher";
    if (config->max_length < 1)
        return "max_length is below 1";
    if (config->max_length > length_max)
        return "max_length is above 2^53";
    if (config->max_concurrent < 0)
        return "max_concurrent is negative";
    if (!(kind->needs & NEED_MAX_TRIALS))
        return NULL;
    if (config->max_trials < 1)
        return "max_trials is below 1";
    if (config->max_trials > TRIALS_MAX)
        return "max_trials is above 10000000";
    return NULL;
}

const char *searcher_check (const struct search_config *config,
                            const struct param *params,
                            size_t n,
                            int *param)
{
    const struct request request = { config, params, n };
    const struct searcher_ops *ops;
    const char *why;

    *param = -1;
    if ((why = check_config (config)) || (why = space_check (params, n, param)))
        return why;
    ops = find_kind (config->name)->ops;
    return ops->check ? ops->check (&request, param) : NULL;
}

void plan_flat (struct plan *plan,
                const struct search_config *config,
                int64_t trials)
{
    plan->divisor = (struct ratio){ 1, 1 };
    plan->rungs = 1;
    plan->length[0] = config->max_length;
    plan->brackets = 1;
    plan->bracket[0].trials = trials;
    plan->bracket[0].limit =
        config->max_concurrent > 0 ? config->max_concurrent : trials;
}

/* Returns the kind, or NULL with errno EINVAL. */
static const struct searcher_kind *make_plan (const struct request *request,
                                              struct plan *plan)
{
    const struct searcher_kind *kind;
    int param;

    if (searcher_check (request->config, request->params, request->n, &param)) {
        errno = EINVAL;
        return NULL;
    }
    kind = find_kind (request->config->name);
    memset (plan, 0, sizeof (*plan));
    kind->ops->plan (request, plan);
    for (int i = 0; i < plan->brackets; i++)
        plan->bracket[i].highest = -1;
    return kind;
}

/* Trials of a bracket that are expected to be trained to each rung. */
static void expect (const struct plan *plan,
                    const struct bracket *b,
                    int64_t trials[RUNGS_MAX + 1])
{
    int64_t left = b->trials;

    memset (trials, 0, (RUNGS_MAX + 1) * sizeof (*trials));
    for (int rung = b->first; rung < plan->rungs; rung++) {
        trials[rung] = left;
        left = ratio_share (plan->divisor, left);
        if (left < 1)
            left = 1;
    }
}

int searcher_preview (const struct search_config *config,
                      const struct param *params,
                      size_t n,
                      struct search_rung *rungs,
                      size_t max)
{
    const struct request request = { config, params, n };
    struct plan plan;
    int64_t trials[RUNGS_MAX + 1];

    if (!make_plan (&request, &plan))
        return -1;
    for (int i = 0; i < plan.rungs && (size_t)i < max; i++)
        rungs[i] = (struct search_rung){ plan.length[i], 0 };
    for (int k = 0; k < plan.brackets; k++) {
        expect (&plan, plan.bracket + k, trials);
        for (int i = plan.bracket[k].first; i < plan.rungs; i++)
            if ((size_t)i < max)
                rungs[i].trials += trials[i] - trials[i + 1];
    }
    return plan.rungs;
}

static double planned_work (const struct plan *plan)
{
    int64_t trials[RUNGS_MAX + 1];
    double work = 0;

    for (int k = 0; k < plan->brackets; k++) {
        const struct bracket *b = plan->bracket + k;
        expect (plan, b, trials);
        for (int i = b->first; i < plan->rungs; i++)
            work +=
                (double)trials[i] * segment_length (plan->length, b->first, i);
    }
    return work;
}

/* Offset of an array at the end of the state. */
static int64_t append (int64_t *size, int64_t bytes)
{
    int64_t at = *size;

    *size += (bytes + 7) / 8 * 8;
    return at;
}

/* Set the offsets in 's' and in the brackets. */
static void
lay_out (struct searcher *s, struct plan *plan, size_t n, bool keeps)
{
    s->size = sizeof (*s);
    s->at_brackets =
        append (&s->size, plan->brackets * sizeof (struct bracket));
    s->at_dims = append (&s->size, n * sizeof (struct dim));
    for (int i = 0; i < plan->brackets; i++) {
        struct bracket *b = plan->bracket + i;
        int64_t rungs = plan->rungs - 1 - b->first;
        b->results = append (&s->size, b->trials * rungs * RESULT_SIZE);
        s->trials += b->trials;
    }
    s->at_trials = append (&s->size, s->trials * sizeof (struct trial));
    s->at_due =
        append (&s->size, plan->rungs > 1 ? s->trials * sizeof (int32_t) : 0);
    if (keeps) {
        s->at_points = append (&s->size, s->trials * n * sizeof (double));
        s->at_values = append (&s->size, s->trials * sizeof (double));
    }
}

static void fill (struct searcher *s,
                  const struct request *request,
                  const struct plan *plan)
{
    const struct searcher_ops *ops = searcher_kinds[s->kind].ops;

    s->seed = request->config->seed;
    s->smaller_is_better = request->config->smaller_is_better;
    s->limit = request->config->max_concurrent;
    s->n = request->n;
    s->rungs = plan->rungs;
    s->brackets = plan->brackets;
    s->divisor = plan->divisor;
    memcpy (s->length, plan->length, sizeof (s->length));
    memcpy (searcher_bracket (s, 0),
            plan->bracket,
            plan->brackets * sizeof (struct bracket));
    for (size_t i = 0; i < request->n; i++)
        space_dim (searcher_dims (s) + i, request->params + i);
    if (ops->prepare)
        ops->prepare (request, searcher_dims (s));
    s->work_planned = planned_work (plan);
}

struct searcher *searcher_create (const struct search_config *config,
                                  const struct param *params,
                                  size_t n)
{
    const struct request request = { config, params, n };
    struct searcher header = { 0 };
    struct plan plan;
    const struct searcher_kind *kind = make_plan (&request, &plan);
    struct searcher *s;

    if (!kind)
        return NULL;
    lay_out (&header, &plan, n, kind->ops->keeps);
    if (!(s = calloc (1, header.size)))
        return NULL;
    memcpy (s, &header, sizeof (header));
    s->kind = kind - searcher_kinds;
    fill (s, &request, &plan);
    return s;
}

void searcher_destroy (struct searcher *s)
{
    int saved = errno;

    free (s);
    errno = saved;
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
