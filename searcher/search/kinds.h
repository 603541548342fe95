/* SPDX-License-Identifier: Apache-2.0 */
/* The search methods by name, and those of a search. */
#pragma once

#include "searcher/state/state.h"

/* NULL if there is none of that name. */
const struct searcher_kind *kind_find (const char *name);
const struct search_sampler *kind_sampler (const struct search_config *config);

static inline const struct search_scheduler *searcher_schedule (const struct searcher *s)
{
    return searcher_kinds[s->kind].scheduler;
}

static inline const struct search_sampler *searcher_sampler (const struct searcher *s)
{
    return searcher_kinds[s->sampler].sampler;
}
