/* SPDX-License-Identifier: Apache-2.0 */
/* Plan full trainings, and compile the constraint of a request. */
#include "searcher/state/state.h"

#include <errno.h>
#include <stdlib.h>

void plan_flat (struct search_plan *plan, const struct search_config *config, int64_t trials)
{
    plan->divisor = (struct ratio){ 1, 1 };
    plan->rungs = 1;
    plan->length[0] = config->max_length;
    plan->brackets = 1;
    plan->bracket[0].trials = trials;
    plan->bracket[0].limit = config->max_concurrent > 0 ? config->max_concurrent : trials;
}

const char *plan_constraint (const struct search_request *request, struct constraint *c,
                             int *column)
{
    const char *const **labels;
    const char **names;
    long *nlabels;
    const char *why = "out of memory";
    size_t n = request->n;
    int e;

    names = malloc ((n + 1) * sizeof (*names));
    labels = malloc ((n + 1) * sizeof (*labels));
    nlabels = malloc ((n + 1) * sizeof (*nlabels));
    if (names && labels && nlabels) {
        struct constraint_names all = { names, labels, nlabels, n };
        for (size_t i = 0; i < n; i++) {
            const struct param *p = request->params + i;
            names[i] = p->name;
            labels[i] = p->labels;
            nlabels[i] = p->type == PARAM_CATEGORICAL ? p->choices : 0;
        }
        why = constraint_compile (c, request->config->constraint, &all, column);
    }
    e = errno;
    free (names);
    free (labels);
    free (nlabels);
    errno = e;
    return why;
}
