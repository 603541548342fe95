/* SPDX-License-Identifier: Apache-2.0 */
/* What an experiment asks for, as a sum of its settings. */
#include "launcher/config/queries.h"

#include <string.h>

bool experiment_has_ranks (const struct experiment *e)
{
    return e->nodes * e->ranks > 1;
}

long experiment_trials (const struct experiment *e)
{
    struct search_rung rungs[64];
    int n = searcher_preview (&e->search, e->params, e->nparams, rungs, 64);
    long trials = 0;

    for (int i = 0; i < n && i < 64; i++)
        trials += rungs[i].trials;
    return trials;
}

const struct searcher_kind *searcher_kind_of (const char *name)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        if (!strcmp (k->name, name))
            return k;
    return NULL;
}

int experiment_needs (const struct experiment *e)
{
    const struct searcher_kind *k = searcher_kind_of (e->search.name);

    return k ? k->needs : 0;
}
