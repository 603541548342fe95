/* SPDX-License-Identifier: Apache-2.0 */
/* Print every proposal of each searcher that trains in full, to the last bit.  The output must not
 * depend on the compiler or the vector unit.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "searcher/searcher.h"

enum { PARAMS = 4, TRIALS = 140 };

static const struct param params[PARAMS] = {
    { .name = "a", .type = PARAM_FLOAT, .max = 1 },
    { .name = "b", .type = PARAM_LOG, .base = 10, .min = -5 },
    { .name = "c", .type = PARAM_INT, .max = 9 },
    { .name = "d", .type = PARAM_CATEGORICAL, .choices = 4 },
};

/* The last parameter is not a number; without it "auto" also starts an evolution. */
static void print_decisions (const char *name, size_t n)
{
    const struct search_config config = {
        .name = name, .seed = 7, .max_trials = TRIALS, .max_length = 1, .smaller_is_better = true
    };
    struct searcher *s = searcher_create (&config, params, n);
    struct search_op op;
    double x[PARAMS] = { 0 };

    while (s && searcher_ask (s, &op, x) == SEARCH_RUN) {
        double bowl = x[0] * x[0] + fabs (x[1] - 0.01) + x[2] / 9 + (x[3] != 1);
        printf ("%s %zu %a %a %a %a\n", name, n, x[0], x[1], x[2], x[3]);
        if (searcher_begin (s, &op, x) || searcher_observe (s, op.trial, 1, &(double){ bowl }))
            exit (1);
    }
    searcher_destroy (s);
}

int main (void)
{
    for (const struct searcher_kind *k = searcher_kinds; k->name; k++)
        if (k->needs & NEED_MAX_TRIALS && !(k->needs & (HAS_REPORTS | IS_CUSTOM)))
            for (size_t n = PARAMS - 1; n <= PARAMS; n++)
                print_decisions (k->name, n);
    return 0;
}
