/* SPDX-License-Identifier: Apache-2.0 */
/* Random search, and the middle of the space. */
#include "searcher/samplers/samplers.h"
#include "searcher/state/state.h"

static void middle_point (const struct searcher *s, long trial, double *x)
{
    const struct dim *dims = searcher_dims (s);

    (void)trial;
    for (int64_t i = 0; i < s->n; i++)
        x[i] = space_middle (dims + i);
}

const struct search_sampler sample_middle = { .point = middle_point };
const struct search_sampler sample_random = { .point = point_random };
