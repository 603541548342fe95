/* SPDX-License-Identifier: Apache-2.0 */
/* Constraint expressions, over four parameters. */
#include <math.h>

#include "searcher/space/constraint.h"
#include "tests/fuzz/fuzz.h"

static const char *const names[] = { "lr", "n", "act", "opt.name" };
static const char *const acts[] = { "relu", "tanh", "true", NULL };
static const char *const opts[] = { "32", "1e-3", NULL };
static const char *const *const labels[] = { NULL, NULL, acts, opts };
static const long nlabels[] = { 0, 0, 3, 2 };

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    static const double points[][4] = {
        { 0.1, 3, 0, 1 },  { -1e300, 0, 2, 0 },     { NAN, NAN, NAN, NAN },
        { 0, 64, 1, NAN }, { INFINITY, -1, 7, -3 },
    };
    struct constraint_names all = { names, labels, nlabels, 4 };
    char *text = fuzz_text (data, size);
    struct constraint c = { 0 };
    int column = 0;

    if (!constraint_compile (&c, text, &all, &column))
        for (size_t i = 0; i < sizeof (points) / sizeof (*points); i++)
            constraint_holds (&c, points[i]);
    else if (column < 1 || (size_t)column > size + 1)
        abort ();
    free (text);
    return 0;
}
