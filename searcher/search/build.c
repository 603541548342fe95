/* SPDX-License-Identifier: Apache-2.0 */
/* Plan a search, lay out its state and create it. */
#include "searcher/search/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "searcher/search/kinds.h"
#include "searcher/state/state.h"

const struct searcher_kind *search_plan (const struct search_request *request,
                                         struct search_plan *plan)
{
    const struct searcher_kind *kind = kind_find (request->config->name);

    memset (plan, 0, sizeof (*plan));
    if (!(plan->bracket = calloc (BRACKETS_MAX, sizeof (*plan->bracket))))
        return NULL;
    kind->scheduler->plan (request, plan);
    for (int i = 0; i < plan->brackets; i++) {
        plan->bracket[i].highest = -1;
        plan->bracket[i].capacity = plan->bracket[i].trials;
    }
    return kind;
}

void search_expect (const struct search_plan *plan, const struct bracket *b,
                    int64_t trials[RUNGS_MAX + 1])
{
    int64_t left = b->capacity;

    memset (trials, 0, (RUNGS_MAX + 1) * sizeof (*trials));
    for (int rung = b->first; rung < plan->rungs; rung++) {
        trials[rung] = left;
        if (!plan->whole)
            left = ratio_share (plan->divisor, left);
        if (left < 1)
            left = 1;
    }
}

double search_work (const struct search_plan *plan)
{
    int64_t trials[RUNGS_MAX + 1];
    double work = 0;

    for (int k = 0; k < plan->brackets; k++) {
        const struct bracket *b = plan->bracket + k;
        search_expect (plan, b, trials);
        for (int i = b->first; i < plan->rungs; i++)
            work += (double)trials[i] * segment_length (plan->length, b->first, i);
    }
    return work;
}

/* Append an array to the state.  Returns its offset. */
static int64_t append_array (int64_t *size, int64_t bytes)
{
    int64_t at = *size;

    *size += (bytes + 7) / 8 * 8;
    return at;
}

void search_lay_out (struct searcher *s, struct bracket *brackets, bool keeps)
{
    int64_t rows = s->capacity + s->known;
    bool compares = s->divisor.p > s->divisor.q;

    s->at_brackets = append_array (&s->size, s->brackets * sizeof (struct bracket));
    for (int i = 0; i < s->brackets; i++) {
        struct bracket *b = brackets + i;
        int64_t rungs = compares ? s->rungs - b->first : 0;
        b->results = append_array (&s->size, b->capacity * rungs * RESULT_SIZE);
    }
    s->at_trials = append_array (&s->size, s->capacity * sizeof (struct search_trial));
    s->at_due = append_array (&s->size, s->capacity * sizeof (int32_t));
    if (keeps) {
        s->at_points = append_array (&s->size, rows * s->n * sizeof (double));
        s->at_values = append_array (&s->size, rows * s->width * sizeof (double));
    }
    if (s->cost_aware)
        s->at_seconds = append_array (&s->size, s->capacity * sizeof (double));
    if (s->repeats > 1)
        s->at_repeats = append_array (&s->size, s->capacity * sizeof (struct repeat));
}

void search_lay_out_own (struct searcher *s, int64_t room)
{
    s->at_schedule = append_array (&s->size, room);
}

/* The part that never grows. */
static void lay_out_space (struct searcher *s, const struct search_request *request)
{
    const struct search_config *config = request->config;
    const struct search_sampler *sampler = kind_sampler (config);

    s->at_dims = append_array (&s->size, s->n * sizeof (struct dim));
    s->at_when =
        append_array (&s->size, space_when_values (request->params, s->n) * sizeof (double));
    if (config->constraint)
        s->at_constraint = append_array (&s->size, sizeof (struct constraint));
    s->points = config->npoints;
    s->at_first = append_array (&s->size, s->points * s->n * sizeof (double));
    s->at_sample = append_array (&s->size, sampler->room ? sampler->room (request) : 0);
}

/* Set the offsets in 's' and in the brackets. */
static void lay_out_state (struct searcher *s, const struct search_request *request,
                           struct search_plan *plan, const struct search_scheduler *schedule)
{
    const struct search_config *config = request->config;
    bool keeps = schedule->keeps || kind_sampler (config)->keeps || config->repeats > 1;

    s->size = sizeof (*s);
    s->n = request->n;
    s->rungs = plan->rungs;
    s->brackets = plan->brackets;
    s->divisor = plan->divisor;
    s->objectives = config->objectives > 1 ? config->objectives : 1;
    s->width = s->objectives > 1 ? s->objectives : plan->rungs;
    s->repeats = config->repeats > 1 ? config->repeats : 1;
    s->cost_aware = config->cost_aware;
    s->known = keeps ? config->nknown : 0;
    for (int i = 0; i < plan->brackets; i++)
        s->trials += plan->bracket[i].trials;
    s->capacity = 2 * s->trials + plan->spare;
    lay_out_space (s, request);
    search_lay_out (s, plan->bracket, keeps);
    search_lay_out_own (s, schedule->room ? schedule->room (request, plan) : 0);
}

static void fill_header (struct searcher *s, const struct search_request *request,
                         const struct search_plan *plan)
{
    const struct search_config *config = request->config;

    s->seed = config->seed;
    for (int64_t i = 0; i < s->objectives; i++)
        s->larger |= (int64_t)(i ? config->larger[i] : !config->smaller_is_better) << i;
    s->limit = config->max_concurrent;
    s->top = plan->rungs - 1;
    s->min_length = config->min_length;
    s->population = config->population;
    s->max_seconds = config->max_seconds;
    memcpy (s->length, plan->length, sizeof (s->length));
    memcpy (searcher_bracket (s, 0), plan->bracket, plan->brackets * sizeof (struct bracket));
    space_fill (searcher_dims (s), s, s->at_when, request->params, s->n);
    s->work_planned = search_work (plan);
}

struct searcher *search_build (const struct search_request *request)
{
    struct searcher header = { 0 };
    struct searcher *s = NULL;
    struct search_plan plan;
    const struct searcher_kind *kind = search_plan (request, &plan);
    int column;

    if (kind) {
        lay_out_state (&header, request, &plan, kind->scheduler);
        s = calloc (1, header.size);
    }
    if (s) {
        const char *sampler = request->config->sampler;
        memcpy (s, &header, sizeof (header));
        s->kind = kind - searcher_kinds;
        s->sampler = sampler ? kind_find (sampler) - searcher_kinds : s->kind;
        fill_header (s, request, &plan);
        if (s->at_constraint)
            plan_constraint (request, searcher_at (s, s->at_constraint), &column);
    }
    free (plan.bracket);
    return s;
}

void searcher_destroy (struct searcher *s)
{
    int saved = errno;

    free (s);
    errno = saved;
}
